// The doorbell: no ring is lost, whatever the moment, and nobody rings without need.
#include "device/doorbell.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <thread>

namespace ringccl {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Mailbox {
    DoorbellWord word{};
    std::atomic<uint64_t> letters{0};
};

// The protocol of device/doorbell.h, owner's side: sleeps until `wanted` letters are there. False if a sleep ran into its
// limit.
bool await(Doorbell& bell, Mailbox& box, uint64_t wanted) {
    std::vector<pollfd> none;
    const auto limit = 10s;
    const auto begin = Clock::now();
    while (box.letters.load(std::memory_order_acquire) < wanted) {
        if (Clock::now() - begin > limit) return false;
        bell.announce(false);
        if (box.letters.load(std::memory_order_acquire) < wanted) bell.sleep(none, limit);
        bell.awake();
    }
    return true;
}

// There is one sender. Adding atomically would be a full fence on some processors.
void deliver(Mailbox& box) {
    box.letters.store(box.letters.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    fence_before_ringing(needs_fence(box.word));
    ring(box.word, -1);
}

class DoorbellFences : public ::testing::TestWithParam<bool> {};  // whether the owners fence the peers

// A lost ring would show as a sleep of ten seconds.
TEST_P(DoorbellFences, LoseNoRing) {
    constexpr uint64_t kLetters = 20000;
    Mailbox there, back;
    Doorbell here_bell, peer_bell;
    here_bell.live_in(&back.word);
    peer_bell.live_in(&there.word);
    if (GetParam()) here_bell.fence_peers(), peer_bell.fence_peers();
    bool peer_good = true;
    std::thread peer([&] {
        for (uint64_t i = 1; i <= kLetters && peer_good; ++i) {
            peer_good = await(peer_bell, there, i);
            deliver(back);
        }
    });
    bool good = true;
    for (uint64_t i = 1; i <= kLetters && good; ++i) {
        deliver(there);
        good = await(here_bell, back, i);
    }
    peer.join();
    EXPECT_TRUE(good);
    EXPECT_TRUE(peer_good);
}

INSTANTIATE_TEST_SUITE_P(, DoorbellFences, ::testing::Bool());

TEST(Doorbell, IsNotRungWhileTheOwnerIsAwake) {
    Mailbox box;
    Doorbell bell;
    bell.live_in(&box.word);
    ring(box.word, -1);
    EXPECT_EQ(box.word.rings.load(), 0u);
    bell.announce(false);
    ring(box.word, -1);
    EXPECT_EQ(box.word.rings.load(), 1u);
    bell.awake();
}

TEST(Doorbell, ARingBetweenAnnounceAndSleepEndsTheSleepAtOnce) {
    for (bool sockets : {false, true}) {
        Doorbell bell;
        ASSERT_TRUE(bell.open_eventfd().ok());
        std::vector<pollfd> descriptors;
        int pipes[2];
        ASSERT_EQ(pipe(pipes), 0);
        if (sockets) descriptors.push_back({pipes[0], POLLIN, 0});
        bell.announce(sockets);
        bell.ring_self();
        const auto begin = Clock::now();
        bell.sleep(descriptors, 10s);
        EXPECT_LT(Clock::now() - begin, 5s);
        bell.awake();
        close(pipes[0]);
        close(pipes[1]);
    }
}

TEST(Doorbell, WakesFromSocketsByItsEvent) {
    Mailbox box;
    Doorbell bell;
    ASSERT_TRUE(bell.open_eventfd().ok());
    bell.live_in(&box.word);
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    std::vector<pollfd> descriptors{{pipes[0], POLLIN, 0}};
    std::thread ringer([&] {
        while (box.word.state.load() != DoorbellWord::on_eventfd) std::this_thread::yield();
        std::this_thread::sleep_for(20ms);
        ring(box.word, bell.eventfd());
    });
    bell.announce(true);
    const auto begin = Clock::now();
    bell.sleep(descriptors, 10s);
    EXPECT_LT(Clock::now() - begin, 5s);
    EXPECT_EQ(descriptors.size(), 1u);  // the event is not left among the caller's
    bell.awake();
    ringer.join();
    close(pipes[0]);
    close(pipes[1]);
}

}  // namespace
}  // namespace ringccl
