// A host stream: the order of asynchronous work. It executes nothing itself; each piece of work takes a ticket when it is
// queued, the communicator's worker waits for the ticket's turn, does the work and passes the turn on.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>

#include "base/status.h"

namespace ringccl {

class Stream {
public:
    uint64_t take_ticket();
    // Returns early if `stop` is set.
    void await_turn(uint64_t ticket, const std::atomic<bool>& stop);
    // The ticket's work is done, or will not be done: its turn may not have come.
    void pass_turn(uint64_t ticket, const Status& outcome);

    // The first failure since the last call, once all tickets have passed.
    Status synchronize();
    // ringInProgress while tickets are out; failures stay for synchronize().
    Status query();

private:
    std::mutex mutex_;
    std::condition_variable moved_;
    uint64_t issued_ = 0, passed_ = 0;
    std::set<uint64_t> passed_early_;
    Status failure_;
};

}  // namespace ringccl
