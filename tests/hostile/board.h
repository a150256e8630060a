// Memory that the processes of a job share with the test, for what must not go over the library that is tested.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>
#include <thread>

#include "base/deadline.h"
#include "ringccl/ringccl.h"

namespace ringccl::test {

inline constexpr int kMostRanks = 16;

struct Board {
    enum IdState { coming, there, none };

    std::atomic<int> id_state{coming};
    ringUniqueId id{};
    std::atomic<int64_t> fault_at{0};  // on the steady clock, which all processes share; 0: not yet
    struct Seat {
        std::atomic<int> call{-1};          // that it makes or will make next
        std::atomic<int> entered{-1};       // the last that it has entered
        std::atomic<bool> answered{false};  // it has an error, or all that it wanted
    };
    Seat seats[kMostRanks];

    // To be said just before the fault.
    void happens() {
        int64_t not_yet = 0;
        fault_at.compare_exchange_strong(not_yet, now());
    }
    // Milliseconds since then; -1: it has not happened.
    double since_fault() const {
        const int64_t at = fault_at.load();
        return at == 0 ? -1 : double(now() - at) / 1e6;
    }
    static int64_t now() { return Deadline::Clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }
};

// A board for the processes that are forked while this lives.
class SharedBoard {
public:
    SharedBoard() {
        void* at = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) std::abort();
        board_ = new (at) Board;
    }
    ~SharedBoard() { munmap(board_, sizeof(Board)); }
    SharedBoard(const SharedBoard&) = delete;
    SharedBoard& operator=(const SharedBoard&) = delete;

    Board& operator*() const { return *board_; }
    Board* operator->() const { return board_; }

private:
    Board* board_;
};

// Waits until `condition` holds, at most `ms`. False: it never did.
template <class Condition>
bool await(int ms, Condition condition) {
    const Deadline deadline = Deadline::after(std::chrono::milliseconds(ms));
    while (!condition()) {
        if (deadline.passed()) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
}

}  // namespace ringccl::test
