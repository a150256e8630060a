// A queue of the caller's in whose order work is done: a host stream (communicator/stream.h) or a CUDA stream. Each piece of
// work takes a ticket when it is queued; its turn comes when all that the queue held then is done, and what is queued behind it
// waits until the turn is passed on.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/status.h"

namespace ringccl {

class Order {
public:
    virtual ~Order() = default;

    virtual Result<uint64_t> take_ticket() = 0;
    // Returns early if `stop` is set.
    virtual void await_turn(uint64_t ticket, const std::atomic<bool>& stop) = 0;
    // The ticket's work is done, or will not be done: its turn may not have come.
    virtual void pass_turn(uint64_t ticket, const Status& outcome) = 0;
};

}  // namespace ringccl
