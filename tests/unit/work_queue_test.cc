// The queue of work: one piece at a time, each caller's in the order in which it gave them, whoever carries them out.
#include "communicator/work_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "communicator/stream.h"

namespace ringccl {
namespace {

using namespace std::chrono_literals;

class WorkQueueTest : public testing::Test {
protected:
    // Work number `sequence` of the caller `root`.
    static std::vector<Operation> work(int caller, uint64_t number) {
        Operation operation;
        operation.print.root = caller;
        operation.print.sequence = number;
        return {operation};
    }

    Status carry_out(std::span<const Operation> operations) {
        EXPECT_FALSE(working_.exchange(true)) << "two at a time";
        for (const Operation& operation : operations) {
            EXPECT_EQ(operation.print.sequence, done_[operation.print.root]++);
            ++total_;
        }
        while (held_.load()) std::this_thread::yield();
        working_.store(false);
        return {};
    }

    std::atomic<bool> working_{false}, held_{false};
    std::map<int, uint64_t> done_;  // by caller
    uint64_t total_ = 0;
    Health health_;
    WorkQueue queue_{health_, [this](std::span<const Operation> operations) { return carry_out(operations); }};
};

TEST_F(WorkQueueTest, OneAtATimeAndInEachCallersOrder) {
    constexpr int kCallers = 4;
    constexpr uint64_t kEach = 3000;
    std::atomic<bool> over{false};
    std::thread looks([&] {
        while (!over.load()) {
            queue_.if_idle([&] { EXPECT_FALSE(working_.load()); });
            (void)queue_.busy();
        }
    });
    std::vector<std::thread> callers;
    for (int caller = 0; caller < kCallers; ++caller)
        callers.emplace_back([&, caller] {
            const std::vector<std::shared_ptr<Order>> streams = {std::make_shared<Stream>(), std::make_shared<Stream>()};
            for (uint64_t number = 0; number < kEach; ++number) {
                // Now and then a run of each, so that the turn is often nobody's and often wanted.
                if (number / 7 % (caller + 2) == 0) {
                    EXPECT_TRUE(queue_.enqueue(work(caller, number), streams).ok());
                } else {
                    EXPECT_TRUE(queue_.run(work(caller, number)).ok());
                }
            }
        });
    for (std::thread& caller : callers) caller.join();
    queue_.drain();
    EXPECT_EQ(total_, kCallers * kEach);
    over.store(true);
    looks.join();
    queue_.close();
}

// A caller that comes while another one works leaves its work to the worker, and is answered.
TEST_F(WorkQueueTest, WorkIsHandedOverWhileSomebodyWorks) {
    held_.store(true);
    std::thread first([&] { EXPECT_TRUE(queue_.run(work(0, 0)).ok()); });
    while (!working_.load()) std::this_thread::yield();
    EXPECT_TRUE(queue_.busy());
    bool looked = false;
    queue_.if_idle([&] { looked = true; });
    EXPECT_FALSE(looked);
    std::thread second([&] { EXPECT_TRUE(queue_.run(work(1, 0)).ok()); });
    std::thread drains([&] { queue_.drain(); });
    std::this_thread::sleep_for(20ms);
    held_.store(false);
    first.join();
    second.join();
    drains.join();
    EXPECT_FALSE(queue_.busy());
    queue_.if_idle([&] { looked = true; });
    EXPECT_TRUE(looked);
    EXPECT_TRUE(queue_.run(work(0, 1)).ok());
    EXPECT_EQ(total_, 3u);
    queue_.close();
}

TEST_F(WorkQueueTest, ClosingCarriesOutWhatIsQueued) {
    const auto stream = std::make_shared<Stream>();
    held_.store(true);
    for (uint64_t number = 0; number < 50; ++number) EXPECT_TRUE(queue_.enqueue(work(0, number), {stream}).ok());
    held_.store(false);
    queue_.close();
    EXPECT_EQ(total_, 50u);
    EXPECT_TRUE(stream->synchronize().ok());
}

TEST_F(WorkQueueTest, WhatWasQueuedBehindAFailureIsNotDone) {
    const auto stream = std::make_shared<Stream>();
    ASSERT_TRUE(health_.fail(failure(ringRemoteError, "rank 3 is gone")));
    EXPECT_TRUE(queue_.enqueue(work(0, 0), {stream}).ok());
    queue_.close();
    EXPECT_EQ(total_, 0u);
    EXPECT_EQ(stream->synchronize().code(), ringRemoteError);
}

}  // namespace
}  // namespace ringccl
