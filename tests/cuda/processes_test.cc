// Ranks on CUDA devices that are processes: memory passed from one to the other, and ranks that die.
#include <unistd.h>

#include <chrono>
#include <string>

#include "device_values.h"
#include "support/environment.h"
#include "support/process_ranks.h"

namespace ringccl::test {
namespace {

constexpr size_t kCount = 5003;

// Registered memory is shown to other processes where it stands, at any place within its allocation.
TEST(CudaProcesses, RegisteredMemory) {
    run_processes({.size = 3}, [](const Member& me) {
        constexpr size_t kParts = 4;
        DeviceValues all(me, 0, numbers(me.rank, kParts * kCount)), out(me, 1, std::vector<int32_t>(kCount));
        void* handle = nullptr;
        if (Verdict v = worked(ringCommRegister(me.comm, all.data(), all.bytes(), &handle), "ringCommRegister"); !v) return v;
        for (size_t part = 0; part < kParts; ++part) {
            if (Verdict v = reduce(me, all.data() + part * kCount, out.data(), kCount, me.stream); !v) return v;
            std::vector<int32_t> sum = sum_of_numbers(me.size, kParts * kCount);
            if (Verdict v = out.are({sum.begin() + static_cast<ptrdiff_t>(part * kCount), sum.end()}); !v)
                return v << ", part " << part;
        }
        return worked(ringCommDeregister(me.comm, handle), "ringCommDeregister");
    });
}

// A rank that is done goes although others have not read yet what it gave them.
TEST(CudaProcesses, ARankMayLeaveEarly) {
    for (const Path& path : {kMemfd, kTcp}) {
        ScopedEnv env;
        path.apply(env);
        run_processes({.size = 3, .transport = path.transport}, [](const Member& me) {
            DeviceValues data(me, 0, numbers(me.rank == 0 ? 7 : me.rank, kCount));
            if (Verdict v = await_side(me); !v) return v;
            if (me.rank == 2) usleep(200 * 1000);
            if (Verdict v =
                    worked(ringBroadcast(data.data(), data.data(), kCount, ringInt32, 0, me.comm, me.stream), "ringBroadcast");
                !v)
                return v;
            return data.are(numbers(7, kCount));
        });
    }
}

// The others sit in cudaStreamSynchronize. They are told within a second, whose text names the dead one.
TEST(CudaProcesses, ADeadRankSetsTheOthersFree) {
    for (const Path& path : {kMemfd, kTcp}) {
        ScopedEnv env;
        path.apply(env);
        run_processes({.size = 3, .transport = path.transport}, [](const Member& me) {
            DeviceValues data(me, 0, numbers(me.rank, kCount));
            for (int round = 0; round < 3; ++round)
                if (Verdict v = reduce(me, data.data(), data.data(), kCount, me.stream); !v) return v;
            if (Verdict v = await_side(me); !v) return v;
            if (me.rank == 1) {
                usleep(100 * 1000);
                _exit(0);  // without a goodbye
            }
            if (Verdict v = reduce(me, data.data(), data.data(), kCount, me.stream); !v) return v;
            const auto begin = std::chrono::steady_clock::now();
            if (Verdict v = cuda_worked(cudaStreamSynchronize(stream_of(me)), "cudaStreamSynchronize"); !v) return v;
            if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(5)) return bad("it took too long");
            ringResult_t state = ringSuccess;
            ringCommGetAsyncError(me.comm, &state);
            const std::string text = ringGetLastError(me.comm);
            if (state != ringRemoteError || text.find("rank 1") == text.npos)
                return bad("rank {} got {}: {}", me.rank, ringGetErrorString(state), text);
            // Work that is queued now ends at once.
            ringAllReduce(data.data(), data.data(), kCount, ringInt32, ringSum, me.comm, me.stream);
            return cuda_worked(cudaStreamSynchronize(stream_of(me)), "cudaStreamSynchronize");
        });
    }
}

// The n-th call of each function fails: the operation says which, on which device, and in CUDA's words; nobody hangs.
class CudaCallsThatFail : public ::testing::TestWithParam<const char*> {};

TEST_P(CudaCallsThatFail, AreNamed) {
    if (!on_standin()) GTEST_SKIP() << "only the stand-in fails on demand";
    const std::string function = GetParam();
    run_processes(
        {.size = 2, .timeout_ms = 5000},
        [function](const Member& me) {
            DeviceValues data(me, 0, numbers(me.rank, kCount));
            if (Verdict v = await_side(me); !v) return v;
            for (int round = 0; round < 400; ++round) {
                const ringResult_t result =
                    ringAllReduce(data.data(), data.data(), kCount, ringInt32, ringSum, me.comm, me.stream);
                if (result == ringSuccess) cudaStreamSynchronize(stream_of(me));
                ringResult_t state = ringSuccess;
                ringCommGetAsyncError(me.comm, &state);
                if (result == ringSuccess && (state == ringSuccess || state == ringInProgress)) continue;
                const std::string text = ringGetLastError(result != ringSuccess ? nullptr : me.comm);
                // Who is left alone says so.
                if (text.find(me.rank == 0 ? "CUDA device" : "rank 0") == text.npos) return bad("rank {}: {}", me.rank, text);
                return good();
            }
            return bad("nothing failed");
        },
        [function](int rank) {
            if (rank == 0) setenv("STANDIN_FAIL", (function + ":300").c_str(), 1);
            return good();
        });
}

INSTANTIATE_TEST_SUITE_P(, CudaCallsThatFail,
                         ::testing::Values("cudaLaunchKernel", "cudaMemcpyAsync", "cuStreamWriteValue32",
                                           "cuStreamWaitValue32"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace ringccl::test
