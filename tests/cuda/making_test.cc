// Making communicators on CUDA devices, and what is said where that cannot be.
#include <string>
#include <vector>

#include "device_values.h"
#include "support/environment.h"
#include "support/process_ranks.h"
#include "support/thread_ranks.h"

namespace ringccl::test {
namespace {

ringConfig_t on_cuda(int index) {
    ringConfig_t config = RINGCCL_CONFIG_INITIALIZER;
    config.deviceKind = ringDeviceCuda;
    config.deviceIndex = index;
    return config;
}

Verdict refused(const ringConfig_t& config, ringResult_t expected, std::initializer_list<const char*> words) {
    ringComm_t comms[2] = {};
    const ringResult_t result = ringCommInitAll(comms, 2, &config);
    const std::string text = ringGetLastError(nullptr);
    if (result != expected) return bad("got {}: {}", ringGetErrorString(result), text);
    for (const char* word : words)
        if (text.find(word) == text.npos) return bad("\"{}\" is not in: {}", word, text);
    return text.find('\n') == text.npos ? good() : bad("more than one line: {}", text);
}

// In a process of its own: the module is loaded once, and devices are counted once.
void apart(const std::function<Verdict()>& body) {
    fork_processes(1, [&](int) { return body(); });
}

TEST(MakingOnCuda, WithoutTheModule) {
    apart([] {
        setenv("RINGCCL_CUDA_MODULE", "/nowhere/libringccl_cuda.so", 1);
        return refused(on_cuda(0), ringInvalidUsage, {"libringccl_cuda.so", "/nowhere", "RINGCCL_CUDA_MODULE"});
    });
}

TEST(MakingOnCuda, WithSomethingElseForTheModule) {
    if (!on_standin()) GTEST_SKIP() << "only the stand-in does this on demand";
    apart([] {
        setenv("RINGCCL_CUDA_MODULE", getenv("RINGCCL_STANDIN_TWIN"), 1);
        return refused(on_cuda(0), ringInvalidUsage, {"libringccl_cuda.so", "another version"});
    });
}

TEST(MakingOnCuda, WithoutADevice) {
    if (!on_standin()) GTEST_SKIP() << "only the stand-in does this on demand";
    apart([] {
        setenv("STANDIN_DEVICES", "0", 1);
        return refused(on_cuda(-1), ringInvalidUsage, {"no CUDA device"});
    });
}

TEST(MakingOnCuda, WithADeviceThatIsNotThere) {
    apart([] { return refused(on_cuda(99), ringInvalidArgument, {"deviceIndex 99"}); });
}

TEST(MakingOnCuda, WhenMemoryIsOut) {
    if (!on_standin()) GTEST_SKIP() << "only the stand-in does this on demand";
    apart([] {
        setenv("STANDIN_FAIL", "cudaMalloc:1", 1);
        return refused(on_cuda(0), ringUnhandledCudaError, {"CUDA device 0", "cudaMalloc", "memory"});
    });
}

// The other one is not left waiting for it.
TEST(MakingOnCuda, WhenMemoryIsOutOnOneRank) {
    if (!on_standin()) GTEST_SKIP() << "only the stand-in does this on demand";
    apart([]() -> Verdict {
        setenv("STANDIN_FAIL", "cudaMalloc:1", 1);
        ringUniqueId id;
        if (Verdict v = worked(ringGetUniqueId(&id), "ringGetUniqueId"); !v) return v;
        ringResult_t results[2];
        std::string texts[2];
        run_threads(2, [&](int rank) {
            ringComm_t comm = nullptr;
            const ringConfig_t config = on_cuda(0);
            results[rank] = ringCommInitRankConfig(&comm, 2, id, rank, &config);
            texts[rank] = ringGetLastError(nullptr);
            return good();
        });
        const int other = results[0] == ringUnhandledCudaError ? 1 : 0;
        if (results[1 - other] != ringUnhandledCudaError || results[other] != ringRemoteError)
            return bad("{} and {}", texts[0], texts[1]);
        if (texts[other].find(fmt::format("rank {} ", 1 - other)) == std::string::npos) return bad("{}", texts[other]);
        return good();
    });
}

TEST(MakingOnCuda, InitAllDealsRanksOutOverTheDevices) {
    apart([]() -> Verdict {
        int count = 0;
        cudaGetDeviceCount(&count);
        ringComm_t comms[3] = {};
        const ringConfig_t config = on_cuda(-1);
        if (Verdict v = worked(ringCommInitAll(comms, 3, &config), "ringCommInitAll"); !v) return v;
        for (int rank = 0; rank < 3; ++rank) {
            int device = -1;
            ringCommDevice(comms[rank], &device);
            if (device != rank % count) return bad("rank {} is on device {}", rank, device);
        }
        run_threads(3, [&](int rank) {
            cudaSetDevice(rank % count);
            Member me{comms[rank], rank, 3, cudaStreamPerThread};
            DeviceValues data(me, 0, numbers(rank, 1000));
            if (Verdict v = reduce(me, data.data(), data.data(), 1000, me.stream); !v) return v;
            if (Verdict v = data.are(sum_of_numbers(3, 1000)); !v) return v;
            return worked(ringCommDestroy(me.comm), "ringCommDestroy");
        });
        return ::testing::Test::HasFailure() ? bad("see above") : good();
    });
}

// All are told the same.
TEST(MakingOnCuda, HostAndDeviceDoNotMix) {
    apart([]() -> Verdict {
        ringUniqueId id;
        if (Verdict v = worked(ringGetUniqueId(&id), "ringGetUniqueId"); !v) return v;
        run_threads(2, [&](int rank) {
            ringConfig_t config = RINGCCL_CONFIG_INITIALIZER;
            if (rank == 1) config = on_cuda(0);
            ringComm_t comm = nullptr;
            const ringResult_t result = ringCommInitRankConfig(&comm, 2, id, rank, &config);
            const std::string text = ringGetLastError(nullptr);
            if (result != ringInvalidUsage || text.find("deviceKind") == text.npos)
                return bad("rank {} got {}: {}", rank, ringGetErrorString(result), text);
            return good();
        });
        return ::testing::Test::HasFailure() ? bad("see above") : good();
    });
}

}  // namespace
}  // namespace ringccl::test
