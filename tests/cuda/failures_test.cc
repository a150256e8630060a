// Failures of CUDA communicators: whoever waits for a stream is set free, and the communicator says why.
#include <atomic>
#include <barrier>
#include <chrono>
#include <string>
#include <thread>

#include "device_values.h"
#include "support/environment.h"
#include "support/thread_ranks.h"

namespace ringccl::test {
namespace {

using std::chrono::milliseconds;

constexpr size_t kCount = 30011;

class CudaFailures : public ::testing::TestWithParam<Path> {
protected:
    void SetUp() override { GetParam().apply(env_); }
    WorldOptions world(int size, int timeout_ms = 60000) const {
        return {.size = size, .transport = GetParam().transport, .timeout_ms = timeout_ms};
    }
    ScopedEnv env_;
};

// Waits for the stream and then asks the communicator. (A call says so itself where the failure is known before it.)
Verdict fails(const Member& me, ringResult_t expected, std::initializer_list<const char*> words) {
    if (Verdict v = cuda_worked(cudaStreamSynchronize(stream_of(me)), "cudaStreamSynchronize"); !v) return v;
    ringResult_t state = ringInProgress;
    for (int look = 0; look < 1000 && state == ringInProgress; ++look) {
        ringCommGetAsyncError(me.comm, &state);
        if (state == ringInProgress) std::this_thread::sleep_for(milliseconds(1));
    }
    const std::string text = ringGetLastError(me.comm);
    if (state != expected)
        return bad("rank {}: {} instead of {}: {}", me.rank, ringGetErrorString(state), ringGetErrorString(expected), text);
    for (const char* word : words)
        if (text.find(word) == text.npos) return bad("\"{}\" is not in: {}", word, text);
    return good();
}

TEST_P(CudaFailures, AbortWhileStreamsAreAwaited) {
    std::barrier<> meet(3);
    run_ranks(world(3), [&](const Member& me) {
        DeviceValues data(me, 0, numbers(me.rank, kCount));
        if (Verdict v = reduce(me, data.data(), data.data(), kCount, me.stream); !v) return v;
        if (Verdict v = await_side(me); !v) return v;
        meet.arrive_and_wait();
        if (me.rank == 2) {
            std::this_thread::sleep_for(milliseconds(50));
            if (Verdict v = worked(ringCommAbort(me.comm), "ringCommAbort"); !v) return v;
            return fails(me, ringRemoteError, {"rank 2", "ringCommAbort"});
        }
        ringAllReduce(data.data(), data.data(), kCount, ringInt32, ringSum, me.comm, me.stream);
        return fails(me, ringRemoteError, {"rank 2", "ringCommAbort"});
    });
}

// Its own stream, which waits for the others, is let go too, though work of the caller's is still before the collective.
TEST_P(CudaFailures, AbortBeforeTheStreamHasComeThere) {
    std::barrier<> meet(2);
    run_ranks(world(2), [&](const Member& me) {
        DeviceValues data(me, 0, numbers(me.rank, kCount));
        if (Verdict v = await_side(me); !v) return v;
        meet.arrive_and_wait();
        std::atomic<bool> open = false;
        cudaLaunchHostFunc(
            stream_of(me), [](void* gate) { static_cast<std::atomic<bool>*>(gate)->wait(false); }, &open);
        Verdict queued = reduce(me, data.data(), data.data(), kCount, me.stream);
        meet.arrive_and_wait();
        if (queued && me.rank == 0) queued = worked(ringCommAbort(me.comm), "ringCommAbort");
        std::this_thread::sleep_for(milliseconds(50));
        open = true;
        open.notify_all();
        if (!queued) return queued;
        return fails(me, ringRemoteError, {"rank 0"});
    });
}

TEST_P(CudaFailures, ARankThatDoesNotComeIsNamed) {
    std::atomic<bool> over = false;
    run_ranks(world(3, 300), [&](const Member& me) {
        DeviceValues data(me, 0, numbers(me.rank, kCount));
        if (Verdict v = await_side(me); !v) return v;
        if (me.rank == 1) {
            over.wait(false);
            return good();
        }
        ringAllReduce(data.data(), data.data(), kCount, ringInt32, ringSum, me.comm, me.stream);
        const Verdict verdict = fails(me, ringTimeout, {"rank 1"});
        over = true;
        over.notify_all();
        return verdict;
    });
}

TEST_P(CudaFailures, RanksThatDisagreeAllHearOfIt) {
    run_ranks(world(3), [](const Member& me) {
        DeviceValues data(me, 0, numbers(me.rank, kCount));
        ringAllReduce(data.data(), data.data(), me.rank == 1 ? kCount - 1 : kCount, ringInt32, ringSum, me.comm, me.stream);
        return fails(me, ringMismatch, {"count", "rank 1", "30010", "30011"});
    });
}

// What was queued behind a failure in the stream runs, so that nobody waits for ever; the results are worth nothing.
TEST_P(CudaFailures, StreamsGoOnAfterAFailure) {
    run_ranks(world(2), [](const Member& me) {
        DeviceValues data(me, 0, numbers(me.rank, kCount));
        if (Verdict v = await_side(me); !v) return v;
        for (int round = 0; round < 5; ++round)
            ringAllReduce(data.data(), data.data(), kCount + static_cast<size_t>(me.rank), ringInt32, ringSum, me.comm,
                          me.stream);
        if (Verdict v = fails(me, ringMismatch, {"count"}); !v) return v;
        data.set(std::vector<int32_t>(kCount, 9));
        cudaMemcpyAsync(data.data(), data.data() + 1, 4, cudaMemcpyDefault, stream_of(me));
        return cuda_worked(cudaStreamSynchronize(stream_of(me)), "cudaStreamSynchronize");
    });
}

TEST_P(CudaFailures, ShrinkAfterAnAbort) {
    std::barrier<> meet(3);
    run_ranks(world(3), [&](const Member& me) {
        DeviceValues data(me, 0, numbers(me.rank, kCount));
        if (Verdict v = reduce(me, data.data(), data.data(), kCount, me.stream); !v) return v;
        if (Verdict v = await_side(me); !v) return v;
        meet.arrive_and_wait();
        if (me.rank == 1) return worked(ringCommAbort(me.comm), "ringCommAbort");
        ringAllReduce(data.data(), data.data(), kCount, ringInt32, ringSum, me.comm, me.stream);
        if (Verdict v = fails(me, ringRemoteError, {"rank 1"}); !v) return v;
        ringComm_t rest = nullptr;
        const int gone = 1;
        if (Verdict v = worked(ringCommShrink(me.comm, &gone, 1, &rest, nullptr), "ringCommShrink"); !v) return v;
        const Member left{rest, me.rank / 2, 2, me.stream};
        DeviceValues fresh(left, 1, numbers(left.rank, kCount));
        Verdict verdict = reduce(left, fresh.data(), fresh.data(), kCount, me.stream);
        if (verdict) verdict = fresh.are(sum_of_numbers(2, kCount));
        Verdict destroyed = worked(ringCommDestroy(rest), "ringCommDestroy");
        return verdict ? destroyed : verdict;
    });
}

INSTANTIATE_TEST_SUITE_P(, CudaFailures, ::testing::Values(kPointer, kMemfd, kTcp),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ringccl::test
