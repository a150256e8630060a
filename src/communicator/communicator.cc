#include "communicator/communicator.h"

#include <algorithm>
#include <cstring>

#include "base/cpus.h"
#include "topology/topology.h"
#include "trace/log.h"

namespace ringccl {

Communicator::Communicator(int rank, int size, Settings settings)
    : rank_(rank), size_(size), settings_(std::move(settings)), sends_(size), recvs_(size) {}

Result<std::shared_ptr<Communicator>> Communicator::make(const ringUniqueId& id, int rank, int size, Settings settings) {
    std::shared_ptr<Communicator> comm(new Communicator(rank, size, std::move(settings)));
    const Deadline deadline = Deadline::after(std::chrono::milliseconds(comm->settings_.init_timeout_ms));
    RINGCCL_ASSIGN(comm->fabric_, Fabric::build(id, rank, size, comm->settings_, comm->bell_, deadline, comm->health_.stop()));
    const std::chrono::milliseconds timeout(comm->settings_.timeout_ms);
    comm->programs_ =
        std::make_unique<Programs>(*comm->fabric_, comm->fabric_->wiring(timeout, comm->health_.stop()), comm->settings_);

    Engine::Options options;
    options.timeout = timeout;
    const bool crowded = local_ranks(comm->fabric_->world()) > usable_cpus();
    options.spin = std::chrono::microseconds(comm->settings_.spin_us >= 0 ? comm->settings_.spin_us : crowded ? 0 : 200);
    options.yields = crowded ? 20 : 2;
    comm->engine_ =
        std::make_unique<Engine>(comm->fabric_->transports(), comm->bell_, comm->health_, comm->fabric_->stage(), options);
    return comm;
}

Communicator::~Communicator() {
    {
        std::lock_guard lock(mutex_);
        closing_ = true;
        changed_.notify_all();
    }
    if (!worker_.joinable()) return;
    // A forked child has the object but not the thread.
    if (in_own_process())
        worker_.join();
    else
        worker_.detach();
}

Status Communicator::usable() const {
    if (finalized_.load()) return failure(ringInvalidUsage, "rank {}: the communicator has been finalized", rank_);
    if (!health_.good()) return health_.first();
    return {};
}

// ---- one operation after the other ----

void Communicator::number(Operation& operation) {
    Fingerprint& print = operation.print;
    if (print.kind == Kind::send) {
        print.sequence = sends_[operation.peer]++;
    } else if (print.kind == Kind::recv) {
        print.sequence = recvs_[operation.peer]++;
    } else {
        print.sequence = sequence_++;
    }
}

void Communicator::bind(Task& task) {
    const Operation& op = task.operation;
    Binding& b = task.binding;
    b.operation = &op;
    b.send = static_cast<const std::byte*>(op.send);
    b.recv = static_cast<std::byte*>(op.recv);
    b.scale = {size_, op.scalar, op.scalar_bits};
    const auto block_of = [&](const void* at) -> const SharedBlock* {
        auto block = at != nullptr ? MemoryTable::of_process().find(at, 1) : nullptr;
        if (block != nullptr) held_blocks_.push_back(block);
        return block.get();
    };
    b.send_block = block_of(op.send);
    b.recv_block = op.recv == op.send ? b.send_block : block_of(op.recv);
}

// Turns the operations into tasks. What a rank sends to itself is copied here and now.
Status Communicator::prepare(std::span<const Operation> operations) {
    tasks_.resize(0);
    tasks_.reserve(operations.size());  // tasks are pointed to
    programs_->trim();
    std::vector<const Operation*> to_self, from_self;
    int shift = 0;
    for (const Operation& operation : operations) {
        const Kind kind = operation.print.kind;
        const bool pair = kind == Kind::send || kind == Kind::recv;
        if (pair && operation.peer == rank_) {
            (kind == Kind::send ? to_self : from_self).push_back(&operation);
            continue;
        }
        Task& task = tasks_.emplace_back();
        RINGCCL_ASSIGN(task.program, programs_->find_or_make(operation, pair ? 0 : shift));
        // By lanes, not by channels: ranks may have different numbers of those.
        if (!pair) shift = (shift + static_cast<int>(task.program->claims().size())) % kPeerLane;
        task.operation = operation;
        number(task.operation);
        if (pair) task.operation.print.kind = Kind::send;  // both ends show the same fingerprint
        bind(task);
    }
    if (to_self.size() != from_self.size())
        return failure(ringInvalidUsage, "rank {} sends {} messages to itself in a group but receives {} of them", rank_,
                       to_self.size(), from_self.size());
    for (size_t i = 0; i < to_self.size(); ++i) {
        const Fingerprint &out = to_self[i]->print, &in = from_self[i]->print;
        if (out.count != in.count || out.type != in.type)
            return failure(ringMismatch, "rank {} sends itself {} {} but receives {} {}", rank_, out.count,
                           type_name(to_self[i]->type()), in.count, type_name(from_self[i]->type()));
        if (out.count != 0) std::memmove(from_self[i]->recv, to_self[i]->send, out.count * type_size(to_self[i]->type()));
    }
    return {};
}

Status Communicator::carry_out(std::span<const Operation> operations) {
    held_blocks_.clear();
    RINGCCL_TRY(prepare(operations));
    if (!tasks_.empty()) RINGCCL_TRY(engine_->run(tasks_));
    completed_.fetch_add(operations.size(), std::memory_order_relaxed);
    return {};
}

// What was queued before finalize() is still carried out. Nothing is thrown: the worker has nobody to throw to.
Status Communicator::execute(std::span<const Operation> operations) noexcept {
    if (!health_.good()) return health_.first();
    Status status;
    try {
        status = carry_out(operations);
    } catch (const std::bad_alloc&) {
        status = failure(ringSystemError, "rank {}: out of memory in an operation", rank_);
    } catch (const std::exception& problem) {
        status = failure(ringInternalError, "rank {}: {}", rank_, problem.what());
    }
    if (!status.ok()) health_.fail(status);
    return status;
}

// ---- whose turn it is ----

Status Communicator::run(std::span<const Operation> operations) {
    RINGCCL_TRY(usable());
    std::unique_lock lock(mutex_);
    if (!busy_ && queue_.empty()) {
        // The caller waits anyway, so it does the work itself: no hand-over, no other thread.
        busy_ = true;
        lock.unlock();
        Status status = execute(operations);
        lock.lock();
        busy_ = false;
        if (!queue_.empty() || waiting_ != 0) changed_.notify_all();
        return status;
    }
    // Work queued earlier comes first.
    Status outcome;
    bool done = false;
    push({{operations.begin(), operations.end()}, {}, &outcome, &done});
    changed_.wait(lock, [&] { return done; });
    return outcome;
}

Status Communicator::enqueue(std::span<const Operation> operations, const std::vector<std::shared_ptr<Stream>>& streams) {
    RINGCCL_TRY(usable());
    std::lock_guard lock(mutex_);
    Batch batch;
    batch.operations.assign(operations.begin(), operations.end());
    // Tickets of several streams are taken together, or two batches could each hold the turn that the other waits for.
    static std::mutex together;
    std::unique_lock all(together, std::defer_lock);
    if (streams.size() > 1) all.lock();
    for (const auto& stream : streams) batch.turns.emplace_back(stream, stream->take_ticket());
    push(std::move(batch));
    return {};
}

// With the lock held.
void Communicator::push(Batch batch) {
    queue_.push_back(std::move(batch));
    if (!worker_.joinable()) worker_ = std::thread([this] { work(); });
    changed_.notify_all();
}

// The worker: carries out queued batches in order until the communicator goes away.
void Communicator::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return (closing_ && queue_.empty()) || (!busy_ && !queue_.empty()); });
        if (queue_.empty()) return;
        Batch batch = std::move(queue_.front());
        queue_.pop_front();
        busy_ = true;
        lock.unlock();
        Status status = await_turns(batch);
        if (status.ok()) status = execute(batch.operations);
        for (auto& [stream, ticket] : batch.turns) stream->pass_turn(status);
        lock.lock();
        if (batch.outcome != nullptr) {
            *batch.outcome = status;
            *batch.done = true;
        }
        busy_ = false;
        changed_.notify_all();
    }
}

// Waits until every stream has come to this batch. Even a failed communicator waits for its turn, or it would pass the turn of
// work that is still running elsewhere; the turn comes, since whoever is before it has a deadline.
Status Communicator::await_turns(const Batch& batch) {
    for (const auto& [stream, ticket] : batch.turns) stream->await_turn(ticket);
    return health_.good() ? Status{} : health_.first();
}

Status Communicator::finalize() {
    std::unique_lock lock(mutex_);
    if (finalized_.exchange(true)) return failure(ringInvalidUsage, "rank {}: finalized twice", rank_);
    ++waiting_;
    changed_.wait(lock, [&] { return !busy_ && queue_.empty(); });
    --waiting_;
    return health_.good() ? Status{} : health_.first();
}

void Communicator::abort() {
    health_.fail(failure(ringRemoteError, "rank {} was aborted by ringCommAbort", rank_));
    bell_.ring_self();
}

ringResult_t Communicator::async_error() {
    if (!health_.good()) return health_.first().code();
    std::lock_guard lock(mutex_);
    return busy_ || !queue_.empty() ? ringInProgress : ringSuccess;
}

ringCommStats_t Communicator::stats() {
    std::lock_guard lock(mutex_);
    if (busy_) return stats_;
    stats_ = {};
    stats_.size = sizeof stats_;
    stats_.operations = completed_.load(std::memory_order_relaxed);
    stats_.sleeps = engine_->sleeps();
    for (const Transport* transport : fabric_->transports()) {
        const Transport::Counters counters = transport->counters();
        stats_.bytesSent += counters.bytes_sent;
        stats_.bytesReceived += counters.bytes_received;
        stats_.messagesSent += counters.messages_sent;
        stats_.payloadSent += counters.payload_sent;
        stats_.strangers += counters.strangers;
    }
    return stats_;
}

}  // namespace ringccl
