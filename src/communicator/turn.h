// Whose turn it is to run the engine of a communicator: a word that is taken and given back by one atomic operation each while
// nobody else cares. Everybody else works under one mutex, which the functions below say when they need.
#pragma once

#include <atomic>
#include <cstdint>

namespace ringccl {

class Turn {
public:
    // Needs no mutex. False if somebody has the turn, or if others come first.
    bool take_at_once() {
        uint32_t nobody = 0;
        return word_.compare_exchange_strong(nobody, kTaken, std::memory_order_acquire, std::memory_order_relaxed);
    }
    // Needs no mutex. True: others are waiting, and are to be told under the mutex.
    bool give() { return (word_.fetch_and(~kTaken, std::memory_order_release) & kWanted) != 0; }

    // With the mutex. False: give() of who has the turn will tell.
    bool take() { return (word_.fetch_or(kTaken | kWanted, std::memory_order_acquire) & kTaken) == 0; }
    bool nobodys() { return (word_.fetch_or(kWanted, std::memory_order_acquire) & kTaken) == 0; }
    // With the mutex. From now on, or no longer, there is work that comes before everybody who would take the turn at once.
    void want() { word_.fetch_or(kWanted, std::memory_order_relaxed); }
    void unwant() { word_.fetch_and(~kWanted, std::memory_order_relaxed); }

    bool taken() const { return (word_.load(std::memory_order_relaxed) & kTaken) != 0; }

private:
    static constexpr uint32_t kTaken = 1, kWanted = 2;
    std::atomic<uint32_t> word_{0};
};

}  // namespace ringccl
