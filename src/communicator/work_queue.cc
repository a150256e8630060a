#include "communicator/work_queue.h"

#include <pthread.h>

#include "base/signals.h"

namespace ringccl {

void WorkQueue::close() {
    {
        std::lock_guard lock(mutex_);
        closing_ = true;
        changed_.notify_all();
    }
    if (worker_.joinable()) worker_.join();
}

void WorkQueue::leave() {
    if (worker_.joinable()) worker_.detach();
}

Status WorkQueue::execute_and_give(std::span<const Operation> operations) {
    Status status = execute_(operations);
    if (turn_.give()) {
        std::lock_guard lock(mutex_);
        if (queue_.empty()) turn_.unwant();  // who waits for it wants it again when it looks
        changed_.notify_all();
    }
    return status;
}

Status WorkQueue::run(std::span<const Operation> operations) {
    // The caller waits anyway, so it does the work itself: no hand-over, no other thread.
    if (turn_.take_at_once()) return execute_and_give(operations);
    std::unique_lock lock(mutex_);
    if (queue_.empty() && turn_.take()) {
        lock.unlock();
        return execute_and_give(operations);
    }
    // Work queued earlier comes first.
    Status outcome;
    bool done = false;
    push({{operations.begin(), operations.end()}, {}, &outcome, &done});
    changed_.wait(lock, [&] { return done; });
    return outcome;
}

Status WorkQueue::enqueue(std::span<const Operation> operations, const std::vector<std::shared_ptr<Order>>& streams) {
    // Who comes first in the streams comes first in the queue.
    std::lock_guard turn(enqueuing_);
    Batch batch;
    batch.operations.assign(operations.begin(), operations.end());
    // Tickets of several streams are taken together, or two batches could each hold the turn that the other waits for.
    static std::mutex together;
    std::unique_lock all(together, std::defer_lock);
    if (streams.size() > 1) all.lock();
    for (const auto& stream : streams) {
        const auto ticket = stream->take_ticket();
        if (!ticket.ok()) {
            for (auto& [taken, number] : batch.tickets) taken->pass_turn(number, ticket.status());
            return ticket.status();
        }
        batch.tickets.emplace_back(stream, ticket.value());
    }
    if (all.owns_lock()) all.unlock();
    std::lock_guard lock(mutex_);
    push(std::move(batch));
    return {};
}

// With the lock held.
void WorkQueue::push(Batch batch) {
    queue_.push_back(std::move(batch));
    turn_.want();
    if (!worker_.joinable()) {
        const SignalsBlocked blocked;
        worker_ = std::thread([this] { work(); });
    }
    changed_.notify_all();
}

// The worker: carries out queued batches in order until there are no more and none can come.
void WorkQueue::work() {
    ::pthread_setname_np(::pthread_self(), "ringccl-worker");
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return queue_.empty() ? closing_ : turn_.take(); });
        if (queue_.empty()) return;
        Batch batch = std::move(queue_.front());
        queue_.pop_front();
        lock.unlock();
        Status status = await_tickets(batch);
        if (status.ok()) status = execute_(batch.operations);
        for (auto& [stream, ticket] : batch.tickets) stream->pass_turn(ticket, status);
        lock.lock();
        if (batch.outcome != nullptr) {
            *batch.outcome = status;
            *batch.done = true;
        }
        (void)turn_.give();
        if (queue_.empty()) turn_.unwant();
        changed_.notify_all();
    }
}

// Waits until every stream has come to this batch, or the communicator has failed.
Status WorkQueue::await_tickets(const Batch& batch) {
    for (const auto& [stream, ticket] : batch.tickets) stream->await_turn(ticket, health_.stop());
    return health_.good() ? Status{} : health_.first();
}

void WorkQueue::drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return queue_.empty() && turn_.nobodys(); });
    turn_.unwant();
}

bool WorkQueue::busy() {
    std::lock_guard lock(mutex_);
    return turn_.taken() || !queue_.empty();
}

}  // namespace ringccl
