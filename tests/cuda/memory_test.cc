// Which memory a CUDA communicator takes, and what becomes of it.
#include <string>

#include "device_values.h"
#include "support/environment.h"
#include "support/thread_ranks.h"

namespace ringccl::test {
namespace {

constexpr size_t kCount = 5003;

Verdict refused(ringResult_t result, std::initializer_list<const char*> words) {
    const std::string text = ringGetLastError(nullptr);
    if (result != ringInvalidArgument) return bad("got {}: {}", ringGetErrorString(result), text);
    for (const char* word : words)
        if (text.find(word) == text.npos) return bad("\"{}\" is not in: {}", word, text);
    return good();
}

TEST(CudaMemory, OrdinaryHostMemoryIsRefused) {
    run_ranks({.size = 2}, [](const Member& me) {
        DeviceValues data(me, 0, numbers(me.rank, kCount));
        std::vector<int32_t> host(kCount);
        if (Verdict v = refused(ringAllReduce(host.data(), data.data(), kCount, ringInt32, ringSum, me.comm, me.stream),
                                {"ringAllReduce", "send buffer", "ordinary host memory", "cudaHostAlloc"});
            !v)
            return v;
        if (Verdict v = refused(ringAllReduce(data.data(), host.data(), kCount, ringInt32, ringSum, me.comm, me.stream),
                                {"receive buffer"});
            !v)
            return v;
        // The communicator is as good as before.
        if (Verdict v = reduce(me, data.data(), data.data(), kCount, me.stream); !v) return v;
        return data.are(sum_of_numbers(me.size, kCount));
    });
}

TEST(CudaMemory, PinnedHostMemoryIsTaken) {
    for (const Path& path : {kPointer, kMemfd, kTcp}) {
        ScopedEnv env;
        path.apply(env);
        run_ranks({.size = 3, .transport = path.transport}, [](const Member& me) {
            void* pinned = nullptr;
            cudaHostAlloc(&pinned, kCount * sizeof(int32_t), cudaHostAllocPortable);
            auto* values = static_cast<int32_t*>(pinned);
            const std::vector<int32_t> mine = numbers(me.rank, kCount), sum = sum_of_numbers(me.size, kCount);
            std::copy(mine.begin(), mine.end(), values);
            if (Verdict v = reduce(me, values, values, kCount, me.stream); !v) return v;
            if (Verdict v = await_side(me); !v) return v;
            if (!std::equal(sum.begin(), sum.end(), values)) return bad("the sum in pinned memory is wrong");
            cudaFreeHost(pinned);
            return good();
        });
    }
}

TEST(CudaMemory, OfAnotherDeviceIsRefused) {
    int count = 0;
    cudaGetDeviceCount(&count);
    if (count < 2) GTEST_SKIP() << "one device";
    run_ranks({.size = 1}, [](const Member& me) {
        cudaSetDevice(1);
        void* elsewhere = nullptr;
        cudaMalloc(&elsewhere, 64);
        cudaSetDevice(0);
        return refused(ringAllReduce(elsewhere, elsewhere, 16, ringInt32, ringSum, me.comm, me.stream),
                       {"device 1", "device 0"});
    });
}

TEST(CudaMemory, NothingNeedsNoMemory) {
    run_ranks({.size = 2}, [](const Member& me) {
        if (Verdict v = reduce(me, nullptr, nullptr, 0, me.stream); !v) return v;
        return await_side(me);
    });
}

// The caller's current device is its own business.
TEST(CudaMemory, TheCurrentDeviceStays) {
    int count = 0;
    cudaGetDeviceCount(&count);
    run_ranks({.size = 2}, [count](const Member& me) {
        int device = -1;
        if (Verdict v = worked(ringCommDevice(me.comm, &device), "ringCommDevice"); !v) return v;
        if (device != me.rank % count) return bad("rank {} is on device {}", me.rank, device);
        DeviceValues data(me, 0, numbers(me.rank, kCount));
        cudaSetDevice(count - 1);
        if (Verdict v = reduce(me, data.data(), data.data(), kCount, me.stream); !v) return v;
        if (cudaGetDevice(&device); device != count - 1) return bad("the current device is {} now", device);
        return data.are(sum_of_numbers(me.size, kCount));
    });
}

TEST(CudaCommunicators, Split) {
    run_ranks({.size = 5}, [](const Member& me) {
        ringComm_t half = nullptr;
        if (Verdict v = worked(ringCommSplit(me.comm, me.rank % 2, me.rank, &half, nullptr), "ringCommSplit"); !v) return v;
        Member part{half, me.rank / 2, me.rank % 2 == 0 ? 3 : 2, me.stream};
        DeviceValues data(me, 0, std::vector<int32_t>(kCount, 1 + part.rank));
        if (Verdict v = reduce(part, data.data(), data.data(), kCount, me.stream); !v) return v;
        if (Verdict v = data.are(std::vector<int32_t>(kCount, part.size == 3 ? 6 : 3)); !v) return v;
        return worked(ringCommDestroy(half), "ringCommDestroy");
    });
}

}  // namespace
}  // namespace ringccl::test
