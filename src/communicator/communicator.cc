#include "communicator/communicator.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/cpus.h"
#include "base/signals.h"
#include "topology/topology.h"
#include "trace/log.h"

namespace ringccl {

namespace {

// How long a rank that failed waits for the verdict of the hub, which may know better: a rank that saw another one's end, and
// one whose operation stood still, after which the hub asks around.
constexpr std::chrono::milliseconds kAwaitCause{1000}, kAwaitInquiry{2000};

}  // namespace

Communicator::Communicator(int rank, int size, Settings settings, std::shared_ptr<Device> device)
    : rank_(rank),
      size_(size),
      settings_(std::move(settings)),
      no_memory_(failure(ringSystemError, "rank {}: out of memory in an operation", rank)),
      presence_(size),
      device_(std::move(device)),
      sends_(size),
      recvs_(size),
      work_(health_, [this](std::span<const Operation> operations) { return execute(operations); }) {}

Status Communicator::meet(const ringUniqueId& id) {
    const Deadline deadline = Deadline::after(std::chrono::milliseconds(settings_.init_timeout_ms));
    auto fabric =
        Fabric::build(id, rank_, size_, settings_, {bell_, *device_, presence_, *this, health_.stop(), aborted_}, deadline);
    if (!fabric.ok()) {
        // What went wrong here comes back to this rank as a verdict too, in words for the others.
        const bool first = health_.fail(fabric.status()), own = fabric.status().code() != ringRemoteError;
        return first || own ? fabric.status() : health_.first();
    }
    fabric_ = fabric.take();
    device_->join(fabric_->name());
    recorder_ = std::make_unique<FlightRecorder>(fabric_->record_header());
    if (!settings_.timeline.empty()) {
        auto timeline = Timeline::open(settings_.timeline, fabric_->record_header().communicator, rank_, size_);
        if (!timeline.ok()) {
            if (Lifeline* line = fabric_->lifeline()) line->failed(timeline.status());
            return timeline.status();
        }
        timeline_ = timeline.take();
    }
    const std::chrono::milliseconds timeout(settings_.timeout_ms);
    programs_ = std::make_unique<Programs>(*fabric_, *device_, fabric_->wiring(timeout, health_.stop(), *recorder_), settings_);

    Engine::Options options;
    options.timeout = timeout;
    options.timeline = timeline_.get();
    const bool crowded = local_ranks(fabric_->world()) > usable_cpus();
    options.spin = std::chrono::microseconds(settings_.spin_us >= 0 ? settings_.spin_us : crowded ? 0 : 200);
    options.yields = crowded ? 20 : 2;
    if (!crowded) bell_.fence_peers();  // who polls seldom sleeps
    if (Lifeline* line = fabric_->lifeline()) options.lasting = [line](uint64_t sequence) { line->waiting(sequence); };
    engine_ = std::make_unique<Engine>(fabric_->transports(), bell_, health_, *recorder_, device_, fabric_->stages(),
                                       std::move(options));
    {
        std::lock_guard lock(mutex_);
        made_.store(true, std::memory_order_release);
        // What another rank's operation has come to since is for this rank's first operation.
        if (!aborted_.load()) return {};
    }
    if (Lifeline* line = fabric_->lifeline()) line->failed(health_.first());
    return health_.first();
}

Communicator::~Communicator() {
    // A forked child has the object but not the threads, and no lifeline.
    if (!in_own_process()) {
        work_.leave();
        return;
    }
    work_.close();
    await_readers();
    if (fabric_ != nullptr) fabric_->untie();
    if (scribe_.joinable()) scribe_.join();
}

void Communicator::await_readers() {
    constexpr std::chrono::microseconds kLook{50};
    if (!made()) return;
    const Deadline deadline = Deadline::after(std::chrono::milliseconds(settings_.timeout_ms));
    const auto transports = fabric_->transports();
    const auto settled = [](Transport* transport) { return transport->settled(); };
    while (health_.good() && !deadline.passed() && !std::all_of(transports.begin(), transports.end(), settled))
        std::this_thread::sleep_for(kLook);
}

// ---- what the monitor hears ----

void Communicator::doomed(const Status& verdict) {
    bool made_before;
    {
        std::lock_guard lock(mutex_);
        if (!health_.fail(verdict)) return;
        made_before = made();
    }
    log().info("rank {}: {}", rank_, verdict.text());
    if (!made_before) return;
    bell_.ring_self();
    leave_record_aside();
}

void Communicator::left(int rank) {
    presence_.note_left(rank);
    if (made()) bell_.ring_self();
}

void Communicator::lost(int rank) {
    presence_.note_lost(rank);
    if (made()) bell_.ring_self();
}

Whereabouts Communicator::whereabouts(uint64_t sequence) {
    if (!made()) return {};
    return {recorder_->begun(), recorder_->doing(), recorder_->print_of(sequence)};
}

Status Communicator::usable() const {
    if (!made()) return failure(ringInvalidUsage, "rank {}: the communicator is still being made", rank_);
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
    b.rank = rank_;
    b.send = static_cast<const std::byte*>(op.send);
    b.recv = static_cast<std::byte*>(op.recv);
    b.scale = {size_, op.scalar, op.scalar_bits};
    if (!task.program->shows_memory()) return;
    const auto block_of = [&](const void* at) -> const Block* {
        std::shared_ptr<Block> block;
        if (at != nullptr && device_->peer_memory() != nullptr)
            block = registrations_.find(at);
        else if (at != nullptr)
            block = MemoryTable::of_process().find(at, 1);
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
        task.operation = operation;
        number(task.operation);
        // On record before links are made for it, which others may never come to do.
        task.record = recorder_->begin(task.operation);
        standstill_ = {};
        if (pair)
            standstill_.peers = {operation.peer};
        else
            standstill_.sequence = task.operation.print.sequence;
        RINGCCL_ASSIGN(task.program, programs_->find_or_make(task.operation, task.record, pair ? 0 : shift));
        recorder_->runs(task.record, task.program->algorithm());
        // By lanes, not by channels: ranks may have different numbers of those.
        if (!pair) shift = (shift + static_cast<int>(task.program->claims().size())) % kPeerLane;
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
        RINGCCL_TRY(engine_->copy(from_self[i]->recv, to_self[i]->send, out.count * type_size(to_self[i]->type())));
    }
    return {};
}

Status Communicator::carry_out(std::span<const Operation> operations) {
    held_blocks_.clear();
    RINGCCL_TRY(prepare(operations));
    if (!tasks_.empty()) {
        Status status = engine_->run(tasks_);
        if (!status.ok()) standstill_ = engine_->standstill();
        RINGCCL_TRY(status);
    }
    // One writer at a time, so no locked instruction.
    completed_.store(completed_.load(std::memory_order_relaxed) + operations.size(), std::memory_order_relaxed);
    return {};
}

// What was queued before finalize() is still carried out. Nothing is thrown: the worker has nobody to throw to.
Status Communicator::execute(std::span<const Operation> operations) noexcept {
    if (!health_.good()) return health_.first();
    Status status;
    try {
        try {
            status = carry_out(operations);
        } catch (const std::bad_alloc&) {
            throw;
        } catch (const std::exception& problem) {
            status = failure(ringInternalError, "rank {}: {}", rank_, problem.what());
        }
    } catch (...) {
        status = no_memory_;  // written beforehand: there may be none left even for a sentence
    }
    if (status.ok()) return status;
    try {
        return settle(status);
    } catch (const std::exception&) {
        (void)health_.fail(status);
        return health_.first();
    }
}

// After a failure: the others are told, what they know already is heard, and nobody reads this rank's memory any more. Returns
// what all calls answer from now on.
Status Communicator::settle(const Status& why) {
    bool own = false;
    if (Lifeline* line = fabric_->lifeline(); line != nullptr && health_.good()) {
        if (why.code() == ringTimeout) {
            line->late(why, standstill_.sequence, standstill_.peers);
            (void)health_.await(Deadline::after(kAwaitInquiry));
        } else if (why.code() == ringRemoteError) {
            line->echo(why, standstill_.sequence);
            (void)health_.await(Deadline::after(kAwaitCause));
        } else {
            // On record first: the verdict on it comes back to this rank too, in words for the others.
            own = health_.fail(why);
            if (own) line->failed(why);
        }
    }
    own |= health_.fail(why);
    if (own) log().info("rank {}: {}", rank_, why.text());
    engine_->abandon();
    for (Transport* transport : fabric_->transports()) transport->withdraw();
    const Status first = health_.first();
    if (own) leave_record();
    recorder_->abandon(first.code());
    return first;
}

Status Communicator::write_record(const std::string& file) const {
    const nlohmann::json record = recorder_->dump(health_.first());
    // Whole or not at all, whoever looks at the directory meanwhile.
    const std::string draft = file + ".part";
    errno = 0;
    std::ofstream out(draft);
    out << record.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n' << std::flush;
    if (!out || std::rename(draft.c_str(), file.c_str()) != 0)
        return system_failure(errno, "writing the flight record to {}", file);
    return {};
}

// For ringccl-doctor, if the user has said where.
void Communicator::leave_record() const {
    if (settings_.record.empty()) return;
    const std::string file =
        fmt::format("{}/ringccl-{}-rank{}.json", settings_.record, fabric_->record_header().communicator, rank_);
    const Status written = write_record(file);
    if (written.ok())
        log().warn("rank {} has failed; its flight record is {}", rank_, file);
    else
        log().warn("rank {} has failed; {}", rank_, written.text());
}

// The thread that fails may be anywhere in the user's program, and who says so must not wait for a slow file system.
void Communicator::leave_record_aside() {
    if (settings_.record.empty()) return;
    const SignalsBlocked blocked;
    scribe_ = std::thread([this] { leave_record(); });
}

Status Communicator::run(std::span<const Operation> operations) {
    RINGCCL_TRY(usable());
    return work_.run(operations);
}

Status Communicator::enqueue(std::span<const Operation> operations, const std::vector<std::shared_ptr<Order>>& streams) {
    RINGCCL_TRY(usable());
    return work_.enqueue(operations, streams);
}

Status Communicator::finalize() {
    if (finalized_.exchange(true)) return failure(ringInvalidUsage, "rank {}: finalized twice", rank_);
    work_.drain();
    return health_.good() ? Status{} : health_.first();
}

void Communicator::abort() {
    const Status why = failure(ringRemoteError, "rank {} was aborted by ringCommAbort", rank_);
    {
        std::lock_guard lock(mutex_);
        if (!health_.fail(why)) return;
        aborted_.store(true);
        if (!made()) return;
    }
    bell_.ring_self();
    if (Lifeline* line = fabric_->lifeline()) line->failed(why);
    leave_record_aside();
}

ringResult_t Communicator::async_error() {
    if (!health_.good()) return health_.first().code();
    if (!made()) return ringInProgress;
    return work_.busy() ? ringInProgress : ringSuccess;
}

ringCommStats_t Communicator::stats() {
    std::lock_guard lock(mutex_);
    if (made()) work_.if_idle([&] { stats_ = count(); });
    return stats_;
}

ringCommStats_t Communicator::count() const {
    ringCommStats_t stats{};
    stats.size = sizeof stats;
    stats.operations = completed_.load(std::memory_order_relaxed);
    stats.sleeps = engine_->sleeps();
    for (const Transport* transport : fabric_->transports()) {
        const Transport::Counters counters = transport->counters();
        stats.bytesSent += counters.bytes_sent;
        stats.bytesReceived += counters.bytes_received;
        stats.messagesSent += counters.messages_sent;
        stats.payloadSent += counters.payload_sent;
        stats.strangers += counters.strangers;
    }
    return stats;
}

}  // namespace ringccl
