// Work for the engine of one communicator, one piece at a time and in the order in which it was given: on the thread of a
// caller that waits anyway, if nothing is before it, else on a worker that is started when it is first needed.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/operation.h"
#include "communicator/turn.h"
#include "device/order.h"
#include "engine/health.h"

namespace ringccl {

class WorkQueue {
public:
    // Must not throw: the worker has nobody to throw to.
    using Execute = std::function<Status(std::span<const Operation>)>;

    WorkQueue(const Health& health, Execute execute) : health_(health), execute_(std::move(execute)) {}
    // One of these is the last call. close() carries out what is queued; leave() is for a forked child, which has the object
    // but not the thread.
    void close();
    void leave();

    // On return the operations are done, or have failed.
    Status run(std::span<const Operation> operations);
    // Queues them behind what each stream holds; waits if a stream has no room for that. Fails only if a stream takes no work,
    // and then nothing is queued.
    Status enqueue(std::span<const Operation> operations, const std::vector<std::shared_ptr<Order>>& streams);

    // Waits until nothing is queued and nobody runs the engine.
    void drain();
    bool busy();
    // Calls `look` while nobody runs the engine; not at all if somebody does.
    template <class Look>
    void if_idle(Look&& look) {
        std::lock_guard lock(mutex_);
        if (!turn_.take_at_once()) return;
        look();
        (void)turn_.give();  // nobody can have come to want it
    }

private:
    struct Batch {
        std::vector<Operation> operations;
        std::vector<std::pair<std::shared_ptr<Order>, uint64_t>> tickets;
        Status* outcome = nullptr;  // of a caller that waits
        bool* done = nullptr;
    };
    Status execute_and_give(std::span<const Operation> operations);
    void push(Batch batch);
    void work();
    Status await_tickets(const Batch& batch);

    const Health& health_;
    const Execute execute_;
    Turn turn_;
    std::mutex enqueuing_;  // held while a stream may have no room, which the worker makes
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Batch> queue_;
    bool closing_ = false;
    std::thread worker_;
};

}  // namespace ringccl
