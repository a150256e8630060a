// Tickets: what is not alive is noticed, and nobody is destroyed under a running call.
#include <gtest/gtest.h>

#include <thread>

#include "api/handles.h"

namespace ringccl {
namespace {

using Table = HandleTable<int>;

TEST(Handles, FindsWhatIsAlive) {
    auto table = std::make_unique<Table>();
    const uint64_t a = table->add(std::make_shared<int>(1)), b = table->add(std::make_shared<int>(2));
    EXPECT_EQ(*table->find(a), 1);
    EXPECT_EQ(*table->find(b), 2);
}

TEST(Handles, NoticesStaleAndMadeUpTickets) {
    auto table = std::make_unique<Table>();
    const uint64_t old = table->add(std::make_shared<int>(1));
    ASSERT_NE(table->remove(old), nullptr);
    const uint64_t next = table->add(std::make_shared<int>(2));  // lives in the same slot
    EXPECT_FALSE(table->find(old));
    EXPECT_EQ(table->remove(old), nullptr);
    EXPECT_TRUE(table->find(next));
    for (uint64_t made_up : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}, next + 1, next ^ (uint64_t{1} << 40)})
        EXPECT_FALSE(table->find(made_up));
}

TEST(Handles, RemovingWaitsForCallsUnderWay) {
    auto table = std::make_unique<Table>();
    const uint64_t ticket = table->add(std::make_shared<int>(1));
    std::atomic<bool> released{false};
    std::thread remover;
    {
        auto pin = table->find(ticket);
        ASSERT_TRUE(pin);
        remover = std::thread([&] {
            EXPECT_NE(table->remove(ticket), nullptr);
            EXPECT_TRUE(released.load());
        });
        while (table->find(ticket)) std::this_thread::yield();  // from now on nobody else gets in
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        released.store(true);
    }
    remover.join();
}

}  // namespace
}  // namespace ringccl
