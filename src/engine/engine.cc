#include "engine/engine.h"

#include <algorithm>
#include <unordered_map>

namespace ringccl {

using std::chrono::microseconds;
using std::chrono::steady_clock;

namespace {

// How long a collective may stand still before lasting() is called first, and the longest while between two calls.
constexpr steady_clock::duration kFirstNotice = std::chrono::milliseconds(100), kRarest = std::chrono::seconds(10);

}  // namespace

Engine::Engine(std::vector<Transport*> transports, Doorbell& bell, const Health& health, FlightRecorder& recorder,
               std::shared_ptr<SharedBlock> stage, Options options)
    : transports_(std::move(transports)),
      bell_(bell),
      health_(health),
      recorder_(recorder),
      options_(std::move(options)),
      stage_block_(std::move(stage)),
      scratches_(kLanes) {
    const size_t each = stage_block_->bytes() / kLanes;
    for (int lane = 0; lane < kLanes; ++lane) stages_.emplace_back(stage_block_.get(), lane * each, each);
    if (options_.timeline != nullptr) trace_.emplace(*options_.timeline);
}

// Tasks that share a link take turns in the order of the batch, which is the same on all ranks; all others run side by side.
void Engine::order() {
    for (Task& task : *tasks_) {
        task.waits_for = 0;
        task.followed_by.clear();
    }
    if (tasks_->size() == 1) return;
    std::unordered_map<uint64_t, size_t> holder;
    for (size_t i = 0; i < tasks_->size(); ++i) {
        for (uint64_t claim : (*tasks_)[i].program->claims()) {
            if (auto [at, free] = holder.try_emplace(claim, i); !free) {
                (*tasks_)[at->second].followed_by.push_back(i);
                ++(*tasks_)[i].waits_for;
                at->second = i;
            }
        }
    }
}

std::byte* Engine::scratch(int lane, size_t bytes) {
    auto& memory = scratches_[lane];
    if (memory.size() < bytes + Stage::kAlign) memory.resize(bytes + Stage::kAlign);
    const auto at = reinterpret_cast<uintptr_t>(memory.data());
    return memory.data() + (Stage::kAlign - at % Stage::kAlign) % Stage::kAlign;
}

void Engine::start(Task& task) {
    auto& runners = task.program->runners();
    task.left = runners.size();
    // Channels of one task on one lane share the lane's scratch: a piece each.
    size_t needed[kLanes] = {}, used[kLanes] = {};
    for (Runner& runner : runners) needed[runner.lane()] += runner.scratch_bytes();
    std::byte* memory[kLanes] = {};
    for (int lane = 0; lane < kLanes; ++lane)
        if (needed[lane] != 0) memory[lane] = scratch(lane, needed[lane]);
    const auto index = static_cast<size_t>(&task - tasks_->data());
    if (trace_) begun_[index] = Timeline::now();
    for (Runner& runner : runners) {
        const int lane = runner.lane();
        runner.start(task.binding, stages_[lane], memory[lane] + used[lane], trace_ ? &*trace_ : nullptr);
        used[lane] += runner.scratch_bytes();
        active_.push_back({&runner, index});
    }
}

void Engine::finish(Task& task) {
    recorder_.end(task.record, ringSuccess);
    if (trace_)
        trace_->timeline().operation(task.operation, task.program->algorithm(), begun_[&task - tasks_->data()], Timeline::now(),
                                     ringSuccess);
    for (size_t next : task.followed_by)
        if (--(*tasks_)[next].waits_for == 0) start((*tasks_)[next]);
}

// One pass over everything that can move.
bool Engine::advance(Status& status) {
    bool moved = false;
    for (size_t i = 0; i < active_.size();) {
        const auto [runner, index] = active_[i];
        switch (runner->advance()) {
            case Runner::State::failed:
                status = runner->status();
                return true;
            case Runner::State::idle:
                ++i;
                continue;
            case Runner::State::moved:
                moved = true;
                ++i;
                continue;
            case Runner::State::done:
                break;
        }
        moved = true;
        active_.erase(active_.begin() + static_cast<ptrdiff_t>(i));
        if (Task& task = (*tasks_)[index]; --task.left == 0) finish(task);
    }
    for (Transport* transport : transports_) moved |= transport->progress();
    if (trace_) trace_->look();
    return moved;
}

Status Engine::run(std::vector<Task>& tasks) {
    active_.clear();
    tasks_ = &tasks;
    if (trace_) begun_.assign(tasks.size(), 0);
    order();
    for (Task& task : tasks)
        if (task.waits_for == 0) start(task);

    Status status;
    Patience patience(options_.spin, options_.yields);
    auto last_move = steady_clock::time_point::min();
    while (!active_.empty()) {
        if (advance(status)) {
            if (!status.ok()) return status;
            patience.renew();
            last_move = steady_clock::time_point::min();
            continue;
        }
        if (active_.empty()) break;
        if (!health_.good()) return health_.first();
        if (patience.idle() == Patience::Next::poll) continue;

        // The clock of the deadline starts with the first sleep after a move: a rank that polls is not stuck yet.
        const auto now = steady_clock::now();
        if (last_move == steady_clock::time_point::min()) {
            last_move = now;
            next_notice_ = kFirstNotice;
        }
        const auto waited = now - last_move;
        if (waited >= options_.timeout) return late();
        if (waited >= next_notice_) note_waiting(waited);
        const auto limit = std::min<steady_clock::duration>(options_.timeout, next_notice_) - waited;
        if (sleep(std::chrono::ceil<microseconds>(limit), status)) {
            if (!status.ok()) return status;
            patience.renew();
            last_move = steady_clock::time_point::min();
        }
    }
    // What the last pass offered still has to be made known.
    for (Transport* transport : transports_) transport->progress();
    return {};
}

// Looks once more and sleeps if nothing has moved meanwhile; true if something had.
bool Engine::sleep(microseconds limit, Status& status) {
    gather_descriptors();
    bell_.announce(!descriptors_.empty());
    const bool moved = advance(status);
    if (!moved && health_.good()) {
        sleeps_.fetch_add(1, std::memory_order_relaxed);
        const Timeline::Ticks begin = trace_ ? Timeline::now() : 0;
        bell_.sleep(descriptors_, limit);
        if (trace_) trace_->timeline().slept(begin, Timeline::now());
    }
    bell_.awake();
    return moved;
}

// Puts on record whom everybody waits for, and speaks of the oldest collective.
void Engine::note_waiting(steady_clock::duration waited) {
    next_notice_ = waited + std::min(waited, kRarest);
    std::optional<uint64_t> oldest;
    for (const Active& active : active_) {
        const Task& task = (*tasks_)[active.task];
        recorder_.waits_for(task.record, active.runner->waits_for());
        const Fingerprint& print = task.operation.print;
        if (print.kind != Kind::send && (!oldest || print.sequence < *oldest)) oldest = print.sequence;
    }
    if (oldest && options_.lasting) options_.lasting(*oldest);
}

void Engine::gather_descriptors() {
    descriptors_.clear();
    for (const Transport* transport : transports_) transport->watch(descriptors_);
}

Engine::Standstill Engine::standstill() {
    Standstill still;
    for (const Active& active : active_) {
        const Fingerprint& print = (*tasks_)[active.task].operation.print;
        if (print.kind != Kind::send && (!still.sequence || print.sequence < *still.sequence)) still.sequence = print.sequence;
        if (const int rank = active.runner->waits_for(); rank >= 0) still.peers.push_back(rank);
    }
    std::sort(still.peers.begin(), still.peers.end());
    still.peers.erase(std::unique(still.peers.begin(), still.peers.end()), still.peers.end());
    return still;
}

Status Engine::late() {
    note_waiting(options_.timeout);
    const std::vector<int> peers = standstill().peers;
    const Task& task = (*tasks_)[active_.front().task];
    return failure(ringTimeout,
                   "{} has not moved for {} ms on rank {}, which waits for rank{} {} (RINGCCL_TIMEOUT_MS sets the limit)",
                   name_of(task.operation.print), options_.timeout.count(), task.binding.rank, peers.size() > 1 ? "s" : "",
                   fmt::join(peers, ", "));
}

}  // namespace ringccl
