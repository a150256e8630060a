// Host streams: work is queued in order and done while the caller does something else.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "paths.h"
#include "support/case.h"
#include "support/thread_ranks.h"

namespace ringccl::test {
namespace {

class Streams : public OnEveryPath {
protected:
    WorldOptions world() const { return {.size = GetParam().size, .transport = GetParam().path.transport}; }
};

// A stream that goes with the test.
struct OwnStream {
    OwnStream() { EXPECT_EQ(ringStreamCreate(&stream), ringSuccess) << ringGetLastError(nullptr); }
    ~OwnStream() { EXPECT_EQ(ringStreamDestroy(stream), ringSuccess) << ringGetLastError(nullptr); }
    ringStream_t stream = nullptr;
};

TEST_P(Streams, EveryCollective) {
    run_ranks(world(), [](const Member& me) {
        OwnStream own;
        Member async = me;
        async.stream = own.stream;
        for (size_t count : {size_t(0), size_t(3), size_t(5000)}) {
            for (Kind kind : kReductions)
                for (Op op : {Op::sum, Op::avg, Op::premul})
                    if (Verdict v = run_case(async, {.kind = kind, .op = op, .count = count}); !v) return v;
            for (Kind kind : kMoves)
                if (Verdict v = run_case(async, {.kind = kind, .count = count}); !v) return v;
            if (Verdict v = run_case(me, {.count = count}); !v) return v;  // blocking calls in between
        }
        return good();
    });
}

// Each call works on the result of the one before: (((x * N) * N) * N) ...
TEST_P(Streams, KeepTheirOrder) {
    run_ranks(world(), [](const Member& me) {
        OwnStream own;
        std::vector<uint64_t> data(10007);
        for (size_t i = 0; i < data.size(); ++i) data[i] = i;
        constexpr int kCalls = 20;
        uint64_t factor = 1;
        for (int call = 0; call < kCalls; ++call) {
            factor *= me.size;
            ringResult_t queued =
                ringAllReduce(data.data(), data.data(), data.size(), ringUint64, ringSum, me.comm, own.stream);
            if (Verdict v = worked(queued, "ringAllReduce"); !v) return v;
        }
        if (Verdict v = worked(ringStreamSynchronize(own.stream), "ringStreamSynchronize"); !v) return v;
        for (size_t i = 0; i < data.size(); ++i)
            if (data[i] != i * factor) return bad("element {} is {}", i, data[i]);
        return worked(ringStreamQuery(own.stream), "ringStreamQuery of an empty stream");
    });
}

// The last rank comes late. The others' calls return all the same, their streams say that work is left, and it is done later.
TEST_P(Streams, DoNotBlockTheCaller) {
    if (GetParam().size == 1) GTEST_SKIP() << "a rank alone waits for nobody";
    std::atomic<bool> go = false;
    run_ranks(world(), [&go](const Member& me) {
        OwnStream own;
        std::vector<float> data(1000, 1.0f);
        if (me.rank == me.size - 1)
            while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ringResult_t queued = ringAllReduce(data.data(), data.data(), data.size(), ringFloat32, ringSum, me.comm, own.stream);
        if (Verdict v = worked(queued, "ringAllReduce"); !v) return v;
        if (me.rank == 0) {
            ringResult_t state = ringStreamQuery(own.stream);
            ringResult_t async = ringSuccess;
            ringCommGetAsyncError(me.comm, &async);
            go = true;
            if (state != ringInProgress) return bad("the stream was {} before the last rank came", ringGetErrorString(state));
            if (async != ringInProgress) return bad("the communicator was {}", ringGetErrorString(async));
        }
        if (Verdict v = worked(ringStreamSynchronize(own.stream), "ringStreamSynchronize"); !v) return v;
        for (float value : data)
            if (value != float(me.size)) return bad("{} instead of {}", value, me.size);
        return good();
    });
}

// Two communicators, two streams, and every second rank queues them the other way round.
TEST_P(Streams, TwoCommunicatorsInOppositeOrder) {
    run_ranks(world(), [](const Member& me) {
        ringComm_t other = nullptr;
        if (Verdict v = worked(ringCommSplit(me.comm, 0, me.rank, &other, nullptr), "ringCommSplit"); !v) return v;
        for (int round = 0; round < 20; ++round) {
            OwnStream first, second;
            std::vector<float> a(70001, float(me.rank)), b(70001, float(10 * me.rank));
            auto queue = [](std::vector<float>& data, ringComm_t comm, OwnStream& on) {
                return worked(ringAllReduce(data.data(), data.data(), data.size(), ringFloat32, ringSum, comm, on.stream),
                              "allReduce");
            };
            if (me.rank % 2 == 0)
                if (Verdict v = queue(a, me.comm, first); !v) return v;
            if (Verdict v = queue(b, other, second); !v) return v;
            if (me.rank % 2 == 1)
                if (Verdict v = queue(a, me.comm, first); !v) return v;
            if (Verdict v = worked(ringStreamSynchronize(me.rank % 2 ? first.stream : second.stream), "synchronize"); !v)
                return v;
            if (Verdict v = worked(ringStreamSynchronize(me.rank % 2 ? second.stream : first.stream), "synchronize"); !v)
                return v;
            float want = float(me.size * (me.size - 1) / 2);
            if (a.front() != want || a.back() != want) return bad("first: {} instead of {}", a.front(), want);
            if (b.front() != 10 * want || b.back() != 10 * want) return bad("second: {} instead of {}", b.front(), 10 * want);
        }
        return worked(ringCommDestroy(other), "ringCommDestroy");
    });
}

// One stream that serves two communicators keeps the order between them.
TEST_P(Streams, OneStreamTwoCommunicators) {
    run_ranks(world(), [](const Member& me) {
        ringComm_t other = nullptr;
        if (Verdict v = worked(ringCommSplit(me.comm, 0, me.rank, &other, nullptr), "ringCommSplit"); !v) return v;
        OwnStream own;
        std::vector<uint64_t> data(3001, 1);
        uint64_t want = 1;
        for (int call = 0; call < 10; ++call) {
            ringComm_t comm = call % 2 ? other : me.comm;
            ringResult_t queued = ringAllReduce(data.data(), data.data(), data.size(), ringUint64, ringSum, comm, own.stream);
            if (Verdict v = worked(queued, "ringAllReduce"); !v) return v;
            want *= me.size;
        }
        if (Verdict v = worked(ringStreamSynchronize(own.stream), "ringStreamSynchronize"); !v) return v;
        for (uint64_t value : data)
            if (value != want) return bad("{} instead of {}", value, want);
        return worked(ringCommDestroy(other), "ringCommDestroy");
    });
}

// Finalize waits for what is queued, destroy of the communicator does too.
TEST_P(Streams, FinalizeDrains) {
    run_ranks(world(), [](const Member& me) {
        ringComm_t other = nullptr;
        if (Verdict v = worked(ringCommSplit(me.comm, 0, me.rank, &other, nullptr), "ringCommSplit"); !v) return v;
        OwnStream own;
        std::vector<float> data(200003, 1.0f);
        for (int call = 0; call < 3; ++call) {
            ringResult_t queued = ringAllReduce(data.data(), data.data(), data.size(), ringFloat32, ringMax, other, own.stream);
            if (Verdict v = worked(queued, "ringAllReduce"); !v) return v;
        }
        if (Verdict v = worked(ringCommFinalize(other), "ringCommFinalize"); !v) return v;
        if (Verdict v = worked(ringStreamQuery(own.stream), "ringStreamQuery after finalize"); !v) return v;
        if (ringAllReduce(data.data(), data.data(), 1, ringFloat32, ringMax, other, nullptr) != ringInvalidUsage)
            return bad("a finalized communicator was used");
        return worked(ringCommDestroy(other), "ringCommDestroy");
    });
}

// Two threads with communicators of their own share two streams, which each names in another order: no batch may hold the turn of
// one stream while it waits for the other's.
TEST(SharedStreams, AreTakenTogether) {
    OwnStream first, second;
    run_threads(2, [&](int thread) {
        ringComm_t comm = nullptr;
        if (Verdict v = worked(ringCommInitAll(&comm, 1, nullptr), "ringCommInitAll"); !v) return v;
        ringStream_t streams[] = {thread == 0 ? first.stream : second.stream, thread == 0 ? second.stream : first.stream};
        float values[2] = {1, 2};
        for (int round = 0; round < (quick() ? 2000 : 20000); ++round) {
            ringGroupStart();
            for (int i = 0; i < 2; ++i) ringAllReduce(&values[i], &values[i], 1, ringFloat32, ringSum, comm, streams[i]);
            if (Verdict v = worked(ringGroupEnd(), "ringGroupEnd"); !v) return v;
        }
        for (ringStream_t stream : streams)
            if (Verdict v = worked(ringStreamSynchronize(stream), "ringStreamSynchronize"); !v) return v;
        return worked(ringCommDestroy(comm), "ringCommDestroy");
    });
}

INSTANTIATE_TEST_SUITE_P(, Streams,
                         ::testing::Values(Place{kPointer, 1}, Place{kPointer, 2}, Place{kPointer, 3}, Place{kMemfd, 3},
                                           Place{kCma, 2}, Place{kTcp, 2}, Place{kTcp, 5}),
                         place_name);

}  // namespace
}  // namespace ringccl::test
