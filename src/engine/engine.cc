#include "engine/engine.h"

#include <algorithm>
#include <thread>
#include <unordered_map>

namespace ringccl {

using std::chrono::microseconds;
using std::chrono::steady_clock;

namespace {

// How long a collective may stand still before lasting() is called first, and the longest while between two calls.
constexpr steady_clock::duration kFirstNotice = std::chrono::milliseconds(100), kRarest = std::chrono::seconds(10);
// A device rings no doorbell: how long a rank sleeps at most while it has work there.
constexpr microseconds kDeviceNap{20};

}  // namespace

Engine::Engine(std::vector<Transport*> transports, Doorbell& bell, const Health& health, FlightRecorder& recorder,
               std::shared_ptr<Device> device, StageBlocks stages, Options options)
    : transports_(std::move(transports)),
      bell_(bell),
      health_(health),
      recorder_(recorder),
      options_(std::move(options)),
      device_(std::move(device)),
      stage_blocks_(std::move(stages)) {
    const auto share_out = [](const Block* block, std::vector<Stage>& stages) {
        const size_t each = block->bytes() / kLanes;
        for (int lane = 0; lane < kLanes; ++lane) stages.emplace_back(block, lane * each, each);
    };
    share_out(stage_blocks_.device.get(), stages_);
    if (stage_blocks_.host != nullptr) share_out(stage_blocks_.host.get(), host_stages_);
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

// Channels of one task on one lane have a piece of the lane's scratch each. Tasks take turns on a lane and use it one after the
// other, but for those of the peers' lane, which run side by side.
void Engine::lay_out_scratch() {
    for (int lane = 0; lane < kLanes; ++lane) work_[lane] = landings_[lane] = {};
    for (Task& task : *tasks_) {
        size_t work[kLanes] = {}, landings[kLanes] = {};
        for (const Runner& runner : task.program->runners()) {
            work[runner.lane()] += runner.work_bytes();
            landings[runner.lane()] += runner.landing_bytes();
        }
        for (int lane = 0; lane < kLanes; ++lane) {
            const auto need = [&](Scratch& scratch, size_t bytes) {
                scratch.needed = lane == kPeerLane ? scratch.needed + bytes : std::max(scratch.needed, bytes);
            };
            need(work_[lane], work[lane]);
            need(landings_[lane], landings[lane]);
        }
    }
    for (int lane = 0; lane < kLanes; ++lane) {
        if (work_[lane].needed != 0) work_[lane].memory = device_->scratch(lane, work_[lane].needed, false);
        if (landings_[lane].needed != 0) landings_[lane].memory = device_->scratch(lane, landings_[lane].needed, true);
    }
}

void Engine::start(Task& task) {
    auto& runners = task.program->runners();
    task.left = runners.size();
    const auto index = static_cast<size_t>(&task - tasks_->data());
    if (trace_) begun_[index] = Timeline::now();
    for (const Runner& runner : runners)
        if (const int lane = runner.lane(); lane != kPeerLane) work_[lane].used = landings_[lane].used = 0;
    for (Runner& runner : runners) {
        const int lane = runner.lane();
        const auto piece = [](Scratch& scratch, size_t bytes) {
            std::byte* at = scratch.memory + scratch.used;
            scratch.used += bytes;
            return at;
        };
        std::byte* const work = piece(work_[lane], runner.work_bytes());
        std::byte* const landings = piece(landings_[lane], runner.landing_bytes());
        runner.start(task.binding, {&stages_[lane], host_stages_.empty() ? &stages_[lane] : &host_stages_[lane]}, work,
                     landings, trace_ ? &*trace_ : nullptr);
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
    lay_out_scratch();
    if (!device_->status().ok()) return device_->status();
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
        if (!device_->status().ok()) return device_->status();
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
        auto limit = std::min<steady_clock::duration>(options_.timeout, next_notice_) - waited;
        if (device_->busy()) limit = std::min<steady_clock::duration>(limit, kDeviceNap);
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

Status Engine::copy(void* dst, const void* src, size_t bytes) {
    if (bytes == 0 || dst == src) return {};
    device_->copy(kPeerLane, dst, src, bytes, false);
    const Device::Ticket ticket = device_->mark(kPeerLane);
    while (ticket != 0 && device_->status().ok() && !device_->done(kPeerLane, ticket)) std::this_thread::sleep_for(kDeviceNap);
    return device_->status();
}

void Engine::abandon() {
    device_->drain();
    for (const Active& active : active_) active.runner->abandon();
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
