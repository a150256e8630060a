// Memory that the ranks of one run share with the parent: for everything that must not travel through the library under test.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#include "ringccl/ringccl.h"

namespace ringccl::faults {

inline constexpr int kMostRanks = 16;

// On the clock that all processes share. 0 stands for "not yet" below.
inline int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

struct Seat {
    std::atomic<int> calls{0};          // pieces of work begun
    std::atomic<bool> holding{false};   // it calls no more, as it was told
    std::atomic<int64_t> answered{0};   // when its work ended, with `result` and `text`
    std::atomic<bool> finished{false};  // all below is filled in

    bool joined = false;
    ringResult_t result = ringSuccess;
    char text[1024] = "";
    bool wrong_data = false;  // a call succeeded with a wrong result
    ringResult_t destroyed = ringSuccess;
    int64_t destroy_ns = 0;
    int64_t abort_ns = 0;  // how long ringCommAbort took, where it was called
    int descriptors_left = 0, threads_left = 0, mappings_left = 0;

    void say(const char* words) { std::snprintf(text, sizeof(text), "%s", words); }
};

struct Board {
    ringUniqueId id{};
    std::atomic<int> id_state{0};   // 1: there, -1: there will be none
    std::atomic<bool> told{false};  // the victim may act
    std::atomic<int64_t> fault_at{0};
    Seat seats[kMostRanks];

    void happens() { fault_at.store(now_ns()); }
};

class SharedBoard {
public:
    SharedBoard() {
        void* at = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) {
            std::perror("mmap of the shared board");
            std::exit(1);
        }
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

// False: it did not come to hold within `ms`.
template <class Condition>
bool await(int ms, Condition condition) {
    const int64_t end = now_ns() + int64_t(ms) * 1'000'000;
    while (!condition()) {
        if (now_ns() > end) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    return true;
}

}  // namespace ringccl::faults
