// ringccl.hpp: ownership, types, sizes and exceptions. That the calls compute the right thing is shown by the other tests.
#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "ringccl/ringccl.hpp"

namespace {

// Runs body(comm) in a thread per rank.
template <class Body>
void with_ranks(int size, Body body) {
    auto comms = ring::Communicator::all(size);
    std::vector<std::thread> threads;
    for (auto& comm : comms) {
        threads.emplace_back([&] {
            try {
                body(comm);
            } catch (const ring::Error& error) {
                ADD_FAILURE() << ringGetErrorString(error.code()) << ": " << error.what();
                comm.abort();
            }
        });
    }
    for (auto& thread : threads) thread.join();
}

TEST(Wrapper, Collectives) {
    with_ranks(2, [](ring::Communicator& comm) {
        const int rank = comm.rank();
        std::vector<float> data = {1.0f + rank, 2.0f + rank};
        comm.allReduce(data, data);
        EXPECT_EQ(data, (std::vector<float>{3, 5}));

        std::array<int64_t, 2> mine = {rank, 10 + rank};
        std::array<int64_t, 4> all{};
        comm.allGather(mine, all);
        EXPECT_EQ(all, (std::array<int64_t, 4>{0, 10, 1, 11}));

        int half[2];
        const int whole[4] = {1, 2, 3, 4};
        comm.scatterReduce(whole, half, ringProd);
        EXPECT_EQ(half[0], rank == 0 ? 1 : 9);
        EXPECT_EQ(half[1], rank == 0 ? 4 : 16);

        ring::Memory<double> shared(3);
        if (rank == 1) shared[2] = 2.5;
        comm.broadcast(shared, 1);
        EXPECT_EQ(shared[2], 2.5);

        std::vector<uint8_t> none, one = {uint8_t(5 + rank)}, both(2);
        if (rank == 0) {
            comm.gather(one, both, 0);
            EXPECT_EQ(both, (std::vector<uint8_t>{5, 6}));
            comm.scatter(both, one, 0);
        } else {
            comm.gather(one, none, 0);
            comm.scatter(none, one, 0);
        }
        EXPECT_EQ(one[0], 5 + rank);
        comm.barrier();
    });
}

TEST(Wrapper, StreamAndGroup) {
    with_ranks(2, [](ring::Communicator& comm) {
        ring::Stream stream;
        std::vector<ring::Bfloat16> ones(100, ring::Bfloat16{0x3f80});
        comm.allReduce(ones, ones, ringSum, stream.get());
        stream.synchronize();
        EXPECT_TRUE(stream.idle());
        EXPECT_EQ(ones[99].bits, 0x4000);

        std::vector<int> sent = {comm.rank()}, received = {-1};
        ring::Group group;
        comm.send(sent, 1 - comm.rank());
        comm.recv(received, 1 - comm.rank());
        group.end();
        EXPECT_EQ(received[0], 1 - comm.rank());
    });
}

TEST(Wrapper, SplitAndMove) {
    with_ranks(3, [](ring::Communicator& comm) {
        ring::Communicator part = comm.split(comm.rank() == 0 ? RINGCCL_SPLIT_NOCOLOR : 0, comm.rank());
        EXPECT_EQ(bool(part), comm.rank() != 0);
        if (!part) return;
        ring::Communicator moved = std::move(part);
        EXPECT_FALSE(part);
        EXPECT_EQ(moved.size(), 2);
        EXPECT_EQ(moved.stats().operations, 0u);
    });
}

TEST(Wrapper, Errors) {
    ring::Communicator alone = std::move(ring::Communicator::all(1)[0]);
    std::vector<float> two(2), three(3);
    EXPECT_THROW(alone.allReduce(two, three), ring::Error);
    try {
        alone.broadcast(two, 5);
        FAIL() << "root 5 of a world of 1 was accepted";
    } catch (const ring::Error& error) {
        EXPECT_EQ(error.code(), ringInvalidArgument);
        EXPECT_STRNE(error.what(), "");
    }
    // An exception that leaves a group open closes it.
    try {
        ring::Group group;
        alone.broadcast(two, 5);
    } catch (const ring::Error&) {
    }
    EXPECT_EQ(ringGroupEnd(), ringInvalidUsage) << "the group was still open";
    EXPECT_NO_THROW(alone.allReduce(two, two));
}

TEST(Wrapper, Types) {
    EXPECT_EQ(ring::DataType<long>::value, ringInt64);
    EXPECT_EQ(ring::DataType<unsigned long long>::value, ringUint64);
    EXPECT_EQ(ring::DataType<unsigned char>::value, ringUint8);
    EXPECT_EQ(ring::DataType<signed char>::value, ringInt8);
    EXPECT_EQ(ring::DataType<int>::value, ringInt32);
}

}  // namespace
