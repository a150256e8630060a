// A host stream: the order of asynchronous work. It executes nothing itself; each piece of work takes a ticket when it is
// queued, the communicator's worker waits for the ticket's turn, does the work and passes the turn on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>

#include "device/order.h"

namespace ringccl {

class Stream final : public Order {
public:
    Result<uint64_t> take_ticket() override;
    void await_turn(uint64_t ticket, const std::atomic<bool>& stop) override;
    void pass_turn(uint64_t ticket, const Status& outcome) override;

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
