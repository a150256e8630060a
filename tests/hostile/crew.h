// A job whose processes share some memory with the test, so that something can be done to them between the steps of their
// lives. Like process_ranks.h it forks before any call of the library.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/fd.h"
#include "support/member.h"

namespace ringccl::test {

constexpr int kMostCrew = 16;

class Crew {
public:
    enum Phase { joining, working, resting, phases };

    struct Shared {
        std::atomic<int> id_state{0};  // 1: there, 2: there will be none
        ringUniqueId id{};
        std::atomic<int> pids[kMostCrew] = {};  // of the ranks, once they run
        std::atomic<int> arrived[phases] = {};  // ranks that have come so far
        std::atomic<int> ended{0};              // ranks that have nothing more to do
        std::atomic<int64_t> joined_us{0};      // how long the last rank to join took to join
        std::atomic<uint64_t> attacks[phases] = {};
        std::atomic<uint64_t> letters[phases] = {};
        std::atomic<uint64_t> strangers{0};     // that the ranks have counted
        std::atomic<int> word[kMostCrew] = {};  // for the test's own use
    };

    Crew();
    ~Crew();
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    Shared* operator->() const { return shared_; }

    // Makes the id on rank 0, gets it on the others. Waits without system calls that a signal could end for good.
    Verdict share_id(int rank, ringUniqueId& id) const;
    Phase phase(int ranks) const;

    // Ranks join and run `body`; `before` runs in each once there is an id. `beside`, if given, is one more process.
    struct Plan {
        WorldOptions world = {};
        std::function<Verdict(int rank)> first = {};   // before its first call of the library
        std::function<Verdict(int rank)> before = {};  // before it joins
        Body body = {};
        std::function<Verdict()> beside = {};
        int seconds = 120;
    };
    Verdict run(const Plan& plan) const;

private:
    Verdict live(const Plan& plan, int rank) const;

    Shared* shared_;
};

// Waits until the condition holds, at most so long.
bool await(const std::function<bool()>& condition, int ms);
void rest(int ms);  // whatever signals come

// Collectives of all kinds and sizes, each result checked.
Verdict mixture(const Member& me, int rounds);

// What processes that are forked while this lives write to stderr, once they have called catch_stderr().
class CaughtLog {
public:
    CaughtLog();
    void catch_stderr() const;
    std::string text() const;

private:
    Fd file_;
};

}  // namespace ringccl::test
