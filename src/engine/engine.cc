#include "engine/engine.h"

#include <algorithm>
#include <unordered_map>

namespace ringccl {

using std::chrono::microseconds;
using std::chrono::steady_clock;

Engine::Engine(std::vector<Transport*> transports, Doorbell& bell, const Health& health, std::shared_ptr<SharedBlock> stage,
               Options options)
    : transports_(std::move(transports)),
      bell_(bell),
      health_(health),
      options_(options),
      stage_block_(std::move(stage)),
      scratches_(kLanes) {
    const size_t each = stage_block_->bytes() / kLanes;
    for (int lane = 0; lane < kLanes; ++lane) stages_.emplace_back(stage_block_.get(), lane * each, each);
}

// Tasks that share a link take turns in the order of the batch, which is the same on all ranks; all others run side by side.
void Engine::order(std::vector<Task>& tasks) {
    for (Task& task : tasks) {
        task.waits_for = 0;
        task.followed_by.clear();
    }
    if (tasks.size() == 1) return;
    std::unordered_map<uint64_t, size_t> holder;
    for (size_t i = 0; i < tasks.size(); ++i) {
        for (uint64_t claim : tasks[i].program->claims()) {
            if (auto [at, free] = holder.try_emplace(claim, i); !free) {
                tasks[at->second].followed_by.push_back(i);
                ++tasks[i].waits_for;
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
    for (Runner& runner : runners) needed[runner.lane()] += runner.scratch_bytes(task.program->arithmetic());
    std::byte* memory[kLanes] = {};
    for (int lane = 0; lane < kLanes; ++lane)
        if (needed[lane] != 0) memory[lane] = scratch(lane, needed[lane]);
    const auto index = static_cast<size_t>(&task - tasks_begin_);
    for (Runner& runner : runners) {
        const int lane = runner.lane();
        runner.start(task.binding, task.program->arithmetic(), stages_[lane], memory[lane] + used[lane]);
        used[lane] += runner.scratch_bytes(task.program->arithmetic());
        active_.push_back({&runner, index});
    }
}

// One pass over everything that can move.
bool Engine::advance(std::vector<Task>& tasks, Status& status) {
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
        if (--tasks[index].left == 0)
            for (size_t next : tasks[index].followed_by)
                if (--tasks[next].waits_for == 0) start(tasks[next]);
    }
    for (Transport* transport : transports_) moved |= transport->progress();
    return moved;
}

Status Engine::run(std::vector<Task>& tasks) {
    active_.clear();
    order(tasks);
    tasks_begin_ = tasks.data();
    for (Task& task : tasks)
        if (task.waits_for == 0) start(task);

    Status status;
    Patience patience(options_.spin, options_.yields);
    auto last_move = steady_clock::time_point::min();
    while (!active_.empty()) {
        if (advance(tasks, status)) {
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
        if (last_move == steady_clock::time_point::min()) last_move = now;
        const auto left = std::chrono::duration_cast<microseconds>(options_.timeout - (now - last_move));
        if (left.count() <= 0) return late(tasks);
        gather_descriptors();
        bell_.announce(!descriptors_.empty());
        const bool moved = advance(tasks, status);
        if (!moved && health_.good()) {
            sleeps_.fetch_add(1, std::memory_order_relaxed);
            bell_.sleep(descriptors_, left);
        }
        bell_.awake();
        if (!status.ok()) return status;
        if (moved) {
            patience.renew();
            last_move = steady_clock::time_point::min();
        }
    }
    // What the last pass offered still has to be made known.
    for (Transport* transport : transports_) transport->progress();
    return {};
}

void Engine::gather_descriptors() {
    descriptors_.clear();
    for (const Transport* transport : transports_) transport->watch(descriptors_);
}

Status Engine::late(const std::vector<Task>& tasks) const {
    std::vector<int> missing;
    for (const Active& active : active_)
        if (int rank = active.runner->waits_for(); rank >= 0) missing.push_back(rank);
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    const Fingerprint& print = tasks[active_.front().task].operation.print;
    const std::string whom = missing.empty()
                                 ? std::string("a peer to take what it was sent")
                                 : fmt::format("rank{} {}", missing.size() > 1 ? "s" : "", fmt::join(missing, ", "));
    return failure(ringTimeout,
                   "{} (operation {}) has not moved for {} ms, waiting for {}; are all ranks alive and making the "
                   "same call? RINGCCL_TIMEOUT_MS sets the limit",
                   kind_name(print.kind), print.sequence, options_.timeout.count(), whom);
}

}  // namespace ringccl
