// What one rank's failure does to the others and to itself: abort at any time, a rank that comes late or leaves early, and
// memory that its owner frees as soon as it may.
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "paths.h"
#include "support/case.h"
#include "support/thread_ranks.h"

namespace ringccl::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

Verdict says(ringComm_t comm, ringResult_t result, ringResult_t expected, std::initializer_list<std::string> words) {
    const std::string text = ringGetLastError(comm);
    if (result != expected)
        return bad("got {} instead of {}: {}", ringGetErrorString(result), ringGetErrorString(expected), text);
    for (const std::string& word : words)
        if (text.find(word) == text.npos) return bad("\"{}\" is not in: {}", word, text);
    return good();
}

ringResult_t reduce_something(ringComm_t comm, size_t count = 1000) {
    std::vector<float> data(count, 1);
    return ringAllReduce(data.data(), data.data(), count, ringFloat32, ringSum, comm, nullptr);
}

// All ranks of the world are past their first call: what one of them does from here on ends no call before it.
class Start {
public:
    void pass(int ranks) {
        ++there_;
        while (there_ < ranks) std::this_thread::yield();
    }

private:
    std::atomic<int> there_ = 0;
};

class Failure : public OnEveryPath {
protected:
    WorldOptions world(int timeout_ms = 60000) const {
        return {.size = GetParam().size, .transport = GetParam().path.transport, .timeout_ms = timeout_ms};
    }
};

TEST_P(Failure, AbortOfOneRankReachesAll) {
    Start start;
    run_ranks(world(), [&](const Member& me) {
        if (Verdict v = run_case(me, {.count = 1000}); !v) return v;
        start.pass(me.size);
        if (me.rank != 1) return says(me.comm, reduce_something(me.comm), ringRemoteError, {"rank 1", "ringCommAbort"});
        const auto begin = Clock::now();
        for (int i = 0; i < 2; ++i)
            if (Verdict v = worked(ringCommAbort(me.comm), "ringCommAbort"); !v) return v;
        if (Clock::now() - begin > seconds(2)) return bad("ringCommAbort did not return at once");
        return says(me.comm, reduce_something(me.comm), ringRemoteError, {"rank 1", "ringCommAbort"});
    });
}

// Its own call, which waits for nobody in particular, ends too.
TEST_P(Failure, AbortEndsTheCallOfAnotherThread) {
    run_ranks(world(), [](const Member& me) {
        if (me.rank != 0) return says(me.comm, reduce_something(me.comm, 300000), ringRemoteError, {"rank 0"});
        std::atomic<bool> calling = false;
        std::thread aborter([&] {
            while (!calling) std::this_thread::yield();
            std::this_thread::sleep_for(milliseconds(30));
            ringCommAbort(me.comm);
        });
        calling = true;
        float nothing = 0;  // a message that nobody sends
        ringResult_t result = ringRecv(&nothing, 1, ringFloat32, 1, me.comm, nullptr);
        aborter.join();
        return says(me.comm, result, ringRemoteError, {"rank 0", "ringCommAbort"});
    });
}

// Nobody reads a buffer of a rank whose call has returned, whatever it returned; and what others computed from it counts only
// if it was all there.
TEST_P(Failure, AbortedRankMayFreeItsBuffers) {
    constexpr size_t kCount = 200000, kBytes = kCount * sizeof(int32_t);
    const int rounds = quick() ? 10 : 40;
    for (int round = 0; round < rounds && !HasFailure(); ++round) {
        run_ranks(world(), [round](const Member& me) {
            auto* data =
                static_cast<int32_t*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
            std::vector<int32_t> blocks(kCount);
            const size_t block = kCount / me.size;
            const auto sum = [&](size_t k) { return me.size * int32_t(k % 1000) + me.size * (me.size - 1) / 2; };
            std::thread aborter;
            if (me.rank == 0)
                aborter = std::thread([&] {
                    std::this_thread::sleep_for(std::chrono::microseconds(50 * (round % 20)));
                    ringCommAbort(me.comm);
                });
            Verdict verdict = good();
            for (int i = 0; i < 50 && verdict; ++i) {
                for (size_t k = 0; k < kCount; ++k) data[k] = int32_t(k % 1000) + me.rank;
                ringResult_t result = ringAllReduce(data, data, kCount, ringInt32, ringSum, me.comm, nullptr);
                // What is only copied may be fetched by the kernel, straight from the buffer.
                if (result == ringSuccess) result = ringAllToAll(data, blocks.data(), block, ringInt32, me.comm, nullptr);
                if (result != ringSuccess) {
                    std::memset(data, 0x55, kBytes);
                    verdict = says(me.comm, result, ringRemoteError, {"rank 0"});
                    break;
                }
                for (size_t k = 0; k < kCount && verdict; ++k)
                    if (data[k] != sum(k)) verdict = bad("element {} is {} instead of {}", k, data[k], sum(k));
                for (size_t k = 0; k < block * me.size && verdict; ++k) {
                    const int32_t want = sum(me.rank * block + k % block);
                    if (blocks[k] != want) verdict = bad("of the blocks element {} is {} instead of {}", k, blocks[k], want);
                }
            }
            munmap(data, kBytes);
            if (aborter.joinable()) aborter.join();
            return verdict;
        });
    }
}

TEST_P(Failure, WhoComesLateIsNamed) {
    run_ranks(world(1500), [](const Member& me) {
        if (Verdict v = run_case(me, {.count = 1000}); !v) return v;
        const int late = me.size - 1;
        if (me.rank == late) std::this_thread::sleep_for(seconds(5));
        return says(me.comm, reduce_something(me.comm), ringTimeout,
                    {"not arrived", fmt::format("rank {} ", late), "allReduce (operation 1)", "1500 ms"});
    });
}

TEST_P(Failure, WhoComesALittleLateIsWaitedFor) {
    run_ranks(world(), [](const Member& me) {
        for (int i = 0; i < 3; ++i) {
            if (me.rank == i % me.size) std::this_thread::sleep_for(milliseconds(700));
            if (Verdict v = run_case(me, {.count = size_t(1000) << (4 * i)}); !v) return v;
        }
        return good();
    });
}

TEST_P(Failure, WhoLeavesEarlyIsNamed) {
    run_ranks(world(), [](const Member& me) {
        if (Verdict v = run_case(me, {.count = 1000}); !v) return v;
        const int leaver = me.size - 1;
        if (me.rank == leaver) return good();  // and destroys the communicator
        return says(me.comm, reduce_something(me.comm, 100000), ringRemoteError, {fmt::format("rank {} ", leaver)});
    });
}

// The last operation of a rank may still be the current one of others.
TEST_P(Failure, WhoLeavesAfterTheLastCallHarmsNobody) {
    for (int round = 0; round < 30 && !HasFailure(); ++round) {
        run_ranks(world(), [round](const Member& me) {
            if (Verdict v = run_case(me, {.kind = Kind::broadcast, .count = 20000, .root = round % me.size}); !v) return v;
            return run_case(me, {.count = size_t(1) << (round % 18)});
        });
    }
}

INSTANTIATE_TEST_SUITE_P(, Failure,
                         ::testing::Values(Place{kPointer, 2}, Place{kPointer, 4}, Place{kMemfd, 2}, Place{kMemfd, 4},
                                           Place{kCma, 3}, Place{kTcp, 2}, Place{kTcp, 4}),
                         place_name);

// The handle is there as soon as the waiting begins.
TEST(AbortWhileMaking, EndsTheWaiting) {
    ringUniqueId id;
    ASSERT_TRUE(worked(ringGetUniqueId(&id), "ringGetUniqueId"));
    std::atomic<ringComm_t> seen = nullptr;
    ringComm_t comm = nullptr;
    std::thread aborter([&] {
        std::atomic_ref<ringComm_t> handle(comm);
        while (handle.load() == nullptr) std::this_thread::yield();
        seen = handle.load();
        std::this_thread::sleep_for(milliseconds(100));
        EXPECT_EQ(reduce_something(seen.load()), ringInvalidUsage);
        EXPECT_EQ(ringCommAbort(seen.load()), ringSuccess);
    });
    const auto begin = Clock::now();
    EXPECT_EQ(ringCommInitRank(&comm, 2, id, 0), ringRemoteError);
    aborter.join();
    EXPECT_LT(Clock::now() - begin, seconds(10));
    EXPECT_EQ(comm, nullptr);
    EXPECT_EQ(ringCommDestroy(seen.load()), ringInvalidUsage);
}

TEST(TwoCommunicators, BothStuckBothAborted) {
    run_ranks({.size = 2, .timeout_ms = 60000}, [](const Member& me) {
        ringComm_t other = nullptr;
        if (Verdict v = worked(ringCommSplit(me.comm, 0, me.rank, &other, nullptr), "ringCommSplit"); !v) return v;
        Verdict verdict = good();
        if (me.rank == 0) {
            // Each waits for a message that never comes.
            float a, b;
            std::thread one(
                [&] { verdict = says(other, ringRecv(&a, 1, ringFloat32, 1, other, nullptr), ringRemoteError, {}); });
            std::thread aborter([&] {
                std::this_thread::sleep_for(milliseconds(100));
                ringCommAbort(other);
                ringCommAbort(me.comm);
            });
            Verdict mine = says(me.comm, ringRecv(&b, 1, ringFloat32, 1, me.comm, nullptr), ringRemoteError, {});
            one.join();
            aborter.join();
            if (!mine) return mine;
        } else {
            verdict = says(other, reduce_something(other), ringRemoteError, {"rank 0"});
        }
        if (!verdict) return verdict;
        return worked(ringCommDestroy(other), "ringCommDestroy");
    });
}

// Work that is queued behind another communicator's on a stream ends with its own communicator.
TEST(TwoCommunicators, AbortOfWorkThatWaitsForItsTurn) {
    run_ranks({.size = 2, .timeout_ms = 60000}, [](const Member& me) {
        ringComm_t other = nullptr;
        if (Verdict v = worked(ringCommSplit(me.comm, 0, me.rank, &other, nullptr), "ringCommSplit"); !v) return v;
        ringStream_t stream = nullptr;
        if (Verdict v = worked(ringStreamCreate(&stream), "ringStreamCreate"); !v) return v;
        float a = 0, b = 0;
        if (me.rank == 0) {
            // The first waits for rank 1, which sends only after the second has been aborted and destroyed.
            ringRecv(&a, 1, ringFloat32, 1, me.comm, stream);
            ringAllReduce(&b, &b, 1, ringFloat32, ringSum, other, stream);
            ringCommAbort(other);
            if (Verdict v = worked(ringCommDestroy(other), "ringCommDestroy"); !v) return v;
        } else {
            if (Verdict v = says(other, reduce_something(other, 1), ringRemoteError, {"rank 0"}); !v) return v;
            if (Verdict v = worked(ringCommDestroy(other), "ringCommDestroy"); !v) return v;
            a = 7;
            if (Verdict v = worked(ringSend(&a, 1, ringFloat32, 0, me.comm, nullptr), "ringSend"); !v) return v;
        }
        ringResult_t result = ringStreamSynchronize(stream);
        ringStreamDestroy(stream);
        if (me.rank == 0 && result != ringRemoteError) return bad("the stream says {}", ringGetErrorString(result));
        return a == 7 ? good() : bad("the message did not come");
    });
}

}  // namespace
}  // namespace ringccl::test
