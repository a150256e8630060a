// Groups: what is called between start and end progresses together, so that no order can deadlock.
#include <algorithm>
#include <vector>

#include "paths.h"
#include "support/thread_ranks.h"

namespace ringccl::test {
namespace {

class Groups : public OnEveryPath {
protected:
    WorldOptions world() const { return {.size = GetParam().size, .transport = GetParam().path.transport}; }
};

using Data = std::vector<int32_t>;

int32_t number(int rank, size_t i) {
    return int32_t(rank * 1000003 + i);
}

Data numbers(int rank, size_t count) {
    Data data(count);
    for (size_t i = 0; i < count; ++i) data[i] = number(rank, i);
    return data;
}

Data sum_of_all(int size, size_t count) {
    Data data(count);
    for (int rank = 0; rank < size; ++rank)
        for (size_t i = 0; i < count; ++i) data[i] += number(rank, i);
    return data;
}

ringResult_t sum(Data& data, ringComm_t comm, void* stream = nullptr) {
    return ringAllReduce(data.data(), data.data(), data.size(), ringInt32, ringSum, comm, stream);
}

TEST_P(Groups, SeveralCollectives) {
    run_ranks(world(), [](const Member& me) {
        std::vector<Data> data;
        for (size_t count : {size_t(1), size_t(1000), size_t(70001), size_t(0), size_t(3)})
            data.push_back(numbers(me.rank, count));
        Data mine = numbers(me.rank, 500), all(500 * me.size);
        ringGroupStart();
        for (Data& part : data) sum(part, me.comm);
        allGather(mine.data(), all.data(), mine.size(), ringInt32, me.comm, nullptr);
        if (Verdict v = worked(ringGroupEnd(), "ringGroupEnd"); !v) return v;
        for (Data& part : data)
            if (part != sum_of_all(me.size, part.size())) return bad("the sum of {} elements is wrong", part.size());
        for (int rank = 0; rank < me.size; ++rank)
            if (!std::equal(all.begin() + 500 * rank, all.begin() + 500 * (rank + 1), numbers(rank, 500).begin()))
                return bad("rank {}'s part was gathered wrong", rank);
        return good();
    });
}

// The last lane is used before those between it and the first.
TEST_P(Groups, MessagesBeforeSeveralCollectives) {
    run_ranks(world(), [](const Member& me) {
        const int right = (me.rank + 1) % me.size, left = (me.rank + me.size - 1) % me.size;
        Data send = numbers(me.rank, 10), recv(10);
        ringGroupStart();
        ringSend(send.data(), 10, ringInt32, right, me.comm, nullptr);
        ringRecv(recv.data(), 10, ringInt32, left, me.comm, nullptr);
        if (Verdict v = worked(ringGroupEnd(), "ringGroupEnd"); !v) return v;
        std::vector<Data> data(3, numbers(me.rank, 100));
        ringGroupStart();
        for (Data& part : data) sum(part, me.comm);
        if (Verdict v = worked(ringGroupEnd(), "ringGroupEnd"); !v) return v;
        for (Data& part : data)
            if (part != sum_of_all(me.size, 100)) return bad("a sum is wrong");
        return recv == numbers(left, 10) ? good() : bad("the message is wrong");
    });
}

// Everybody sends to the right and receives from the left; far more than a link holds. A rank alone sends to itself.
TEST_P(Groups, Ring) {
    run_ranks(world(), [](const Member& me) {
        const size_t count = 300007;
        const int right = (me.rank + 1) % me.size, left = (me.rank + me.size - 1) % me.size;
        Data send = numbers(me.rank, count), recv(count);
        for (int round = 0; round < 3; ++round) {
            ringGroupStart();
            ringSend(send.data(), count, ringInt32, right, me.comm, nullptr);
            ringRecv(recv.data(), count, ringInt32, left, me.comm, nullptr);
            if (Verdict v = worked(ringGroupEnd(), "ringGroupEnd"); !v) return v;
            if (recv != numbers(left, count)) return bad("round {}: not what rank {} sent", round, left);
        }
        return good();
    });
}

// All to all, of different sizes, from sends and receives; two to each peer, which must match in order.
TEST_P(Groups, AllToAllOfSendsAndReceives) {
    run_ranks(world(), [](const Member& me) {
        auto count = [](int from, int to) { return size_t(1 + 977 * from + 131 * to); };
        std::vector<Data> send, recv;
        for (int peer = 0; peer < me.size; ++peer) {
            for (int turn = 0; turn < 2; ++turn) {
                send.push_back(numbers(me.rank * 16 + peer + 1000 * turn, count(me.rank, peer)));
                recv.emplace_back(count(peer, me.rank));
            }
        }
        ringGroupStart();
        for (size_t i = 0; i < send.size(); ++i) {
            ringRecv(recv[i].data(), recv[i].size(), ringInt32, int(i) / 2, me.comm, nullptr);
            ringSend(send[i].data(), send[i].size(), ringInt32, int(i) / 2, me.comm, nullptr);
        }
        if (Verdict v = worked(ringGroupEnd(), "ringGroupEnd"); !v) return v;
        for (int peer = 0; peer < me.size; ++peer)
            for (int turn = 0; turn < 2; ++turn)
                if (recv[2 * peer + turn] != numbers(peer * 16 + me.rank + 1000 * turn, count(peer, me.rank)))
                    return bad("message {} of rank {} is wrong", turn, peer);
        return good();
    });
}

TEST_P(Groups, SendsBesideCollectives) {
    run_ranks(world(), [](const Member& me) {
        const int right = (me.rank + 1) % me.size, left = (me.rank + me.size - 1) % me.size;
        Data data = numbers(me.rank, 20011), send = numbers(me.rank, 5003), recv(5003);
        ringGroupStart();
        ringGroupStart();  // groups nest
        sum(data, me.comm);
        ringGroupEnd();
        ringSend(send.data(), send.size(), ringInt32, right, me.comm, nullptr);
        ringRecv(recv.data(), recv.size(), ringInt32, left, me.comm, nullptr);
        if (Verdict v = worked(ringGroupEnd(), "ringGroupEnd"); !v) return v;
        if (data != sum_of_all(me.size, data.size())) return bad("the sum is wrong");
        if (recv != numbers(left, recv.size())) return bad("the message is wrong");
        return good();
    });
}

// One thread plays all ranks: the communicators are made in one group and used in others.
TEST_P(Groups, OneThreadIsAllRanks) {
    const int size = GetParam().size;
    ringConfig_t config = world().config();
    ringUniqueId id;
    ASSERT_EQ(ringGetUniqueId(&id), ringSuccess);
    std::vector<ringComm_t> comms(size);
    ringGroupStart();
    for (int rank = 0; rank < size; ++rank) ringCommInitRankConfig(&comms[rank], size, id, rank, &config);
    ASSERT_TRUE(worked(ringGroupEnd(), "ringGroupEnd of initialisations"));
    for (size_t count : {size_t(1), size_t(100), size_t(100003)}) {
        std::vector<Data> data;
        for (int rank = 0; rank < size; ++rank) data.push_back(numbers(rank, count));
        ringGroupStart();
        for (int rank = 0; rank < size; ++rank) sum(data[rank], comms[rank]);
        ASSERT_TRUE(worked(ringGroupEnd(), "ringGroupEnd"));
        for (int rank = 0; rank < size; ++rank) ASSERT_EQ(data[rank], sum_of_all(size, count)) << "rank " << rank;
    }
    for (ringComm_t comm : comms) EXPECT_EQ(ringCommDestroy(comm), ringSuccess) << ringGetLastError(nullptr);
}

// Two worlds that each rank uses in another order.
TEST_P(Groups, TwoWorldsInAnyOrder) {
    run_ranks(world(), [](const Member& me) {
        ringComm_t other = nullptr;
        if (Verdict v = worked(ringCommSplit(me.comm, 0, me.rank, &other, nullptr), "ringCommSplit"); !v) return v;
        Data a = numbers(me.rank, 60013), b = numbers(me.rank + 5, 60013);
        ringGroupStart();
        if (me.rank % 2) sum(b, other);
        sum(a, me.comm);
        if (me.rank % 2 == 0) sum(b, other);
        if (Verdict v = worked(ringGroupEnd(), "ringGroupEnd"); !v) return v;
        if (a != sum_of_all(me.size, a.size())) return bad("the sum in the first world is wrong");
        Data want(b.size());
        for (int rank = 0; rank < me.size; ++rank)
            for (size_t i = 0; i < want.size(); ++i) want[i] += number(rank + 5, i);
        if (b != want) return bad("the sum in the second world is wrong");
        return worked(ringCommDestroy(other), "ringCommDestroy");
    });
}

INSTANTIATE_TEST_SUITE_P(, Groups,
                         ::testing::Values(Place{kPointer, 1}, Place{kPointer, 3}, Place{kMemfd, 2}, Place{kMemfd, 5},
                                           Place{kCma, 3}, Place{kTcp, 2}, Place{kTcp, 5}),
                         place_name);

// Without a group: one sends, the other receives, in order.
TEST(PointToPoint, MatchesInOrder) {
    for (const char* transport : {"p2p", "tcp"}) {
        run_ranks({.size = 3, .transport = transport}, [](const Member& me) {
            for (size_t count : {size_t(1), size_t(17), size_t(0), size_t(400009)}) {
                Data data = me.rank == 0 ? numbers(7, count) : Data(count);
                // 0 -> 1 -> 2
                if (me.rank > 0) {
                    ringResult_t got = ringRecv(data.data(), count, ringInt32, me.rank - 1, me.comm, nullptr);
                    if (Verdict v = worked(got, "ringRecv"); !v) return v;
                }
                if (me.rank < 2) {
                    ringResult_t sent = ringSend(data.data(), count, ringInt32, me.rank + 1, me.comm, nullptr);
                    if (Verdict v = worked(sent, "ringSend"); !v) return v;
                }
                if (data != numbers(7, count)) return bad("rank {}: {} elements arrived wrong", me.rank, count);
            }
            return good();
        });
    }
}

TEST(GroupErrors, EndWithoutStart) {
    EXPECT_EQ(ringGroupEnd(), ringInvalidUsage);
    EXPECT_STRNE(ringGetLastError(nullptr), "");
}

// A bad argument inside a group is told at once and again at the end, and nothing of the group is started.
TEST(GroupErrors, BadArgumentStartsNothing) {
    run_ranks({.size = 2}, [](const Member& me) {
        Data data = numbers(me.rank, 10), before = data;
        ringGroupStart();
        sum(data, me.comm);
        ringResult_t wrong = ringAllReduce(nullptr, data.data(), 10, ringInt32, ringSum, me.comm, nullptr);
        ringResult_t end = ringGroupEnd();
        if (wrong != ringInvalidArgument) return bad("the call gave {}", ringGetErrorString(wrong));
        if (end != ringInvalidArgument) return bad("ringGroupEnd gave {}", ringGetErrorString(end));
        if (data != before) return bad("a call of the failed group was carried out");
        // The communicator is none the worse for it.
        if (Verdict v = worked(sum(data, me.comm), "ringAllReduce afterwards"); !v) return v;
        return data == sum_of_all(2, 10) ? good() : bad("the sum afterwards is wrong");
    });
}

}  // namespace
}  // namespace ringccl::test
