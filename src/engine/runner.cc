#include "engine/runner.h"

#include <algorithm>

namespace ringccl {
namespace {

// Bytes: a rank that takes nothing, as the root of a broadcast, is done sooner with a copy than when peers have read this much.
constexpr size_t kEager = 1 << 10;

}  // namespace

Runner::Runner(std::vector<BoundStep> steps, std::vector<Sink> sinks, int lane, const Arithmetic& arithmetic, Device& device)
    : steps_(std::move(steps)), lane_(lane), arithmetic_(&arithmetic), device_(&device), depth_(device.depth()) {
    for (const Sink& sink : sinks) holds_.push_back({sink.rank, sink.link});
    for (BoundStep& step : steps_) {
        const size_t window = step.slice * kWindowSlices;
        step.windows = std::max<size_t>(1, (step.count + window - 1) / window);
    }
    measure_memory();
    views_.resize(std::max<size_t>(1, most_sources_));
    operands_.resize(most_sources_ + 1);
    begun_.resize(depth_ + 1);
    for (Begun& slice : begun_) slice.pinned.resize(most_sources_);
    if (most_sources_ == 0 && device.peer_memory() == nullptr) eager_bytes_ = kEager;
}

void Runner::measure_memory() {
    bool works = static_cast<bool>(arithmetic_->scale), lands = false;
    for (const BoundStep& step : steps_) {
        most_sources_ = std::max(most_sources_, step.sources.size());
        largest_slice_ = std::max(largest_slice_, std::min(step.slice, std::max<size_t>(step.count, 1)));
        works |= !step.sinks.empty() && !step.dest.exists() && step.inline_bytes != 0;
        lands |= step.lands && (step.reduce || !step.dest.exists() || !step.land_in_place);
    }
    largest_slice_ = (largest_slice_ * arithmetic_->element + Stage::kAlign - 1) / Stage::kAlign * Stage::kAlign;
    landing_sets_ = depth_ > 1 ? 2 : 1;
    work_bytes_ = works ? largest_slice_ : 0;
    // One for every source and slice of a window.
    landing_bytes_ = lands ? landing_sets_ * most_sources_ * kWindowSlices * largest_slice_ : 0;
}

void Runner::start(const Binding& binding, Stages stages, std::byte* work, std::byte* landings, SliceTrace* trace) {
    binding_ = &binding;
    stages_ = stages;
    work_ = work;
    landings_ = landings;
    trace_ = trace;
    if (trace_ != nullptr) slice_since_ = Timeline::now();
    for (Hold& hold : holds_) hold.until = hold.ahead = 0;
    status_ = {};
    last_begun_ = last_done_ = last_ended_ = 0;
    cursor_.start(steps_);
    viewed_ = 0;
    posted_ = false;
    if (!cursor_.finished()) (void)post();
}

std::byte* Runner::local_memory(const Region& region, size_t begin) const {
    std::byte* base = region.buffer == Buffer::send ? const_cast<std::byte*>(binding_->send) : binding_->recv;
    // A buffer may be NULL when there is nothing in it.
    return base == nullptr ? nullptr : base + (region.offset + begin) * arithmetic_->element;
}

const Block* Runner::block_of(const Region& region) const {
    return region.buffer == Buffer::send ? binding_->send_block : binding_->recv_block;
}

std::byte* Runner::landing(size_t source, size_t slice) const {
    // What is only put somewhere lands there at once.
    const BoundStep& s = step();
    if (!s.reduce && s.dest.exists() && s.land_in_place) return local_memory(s.dest, cursor_.span(slice).begin);
    if (landing_bytes_ == 0) return nullptr;
    const size_t set = cursor_.round() % landing_sets_;
    return landings_ + ((set * most_sources_ + source) * kWindowSlices + slice) * largest_slice_;
}

// Tells the sources of the current step where its slices may land; false while what landed there before is still read.
bool Runner::post() {
    if (posted_) return true;
    if (last_done_ != last_begun_ && landing_bytes_ != 0 && begun(last_done_).round + landing_sets_ <= cursor_.round())
        return false;
    for (size_t s = 0; s < step().sources.size(); ++s)
        for (size_t i = 0; i < cursor_.slices(); ++i)
            step().sources[s]->post(landing(s, i), cursor_.span(i).count * arithmetic_->element);
    return posted_ = true;
}

Runner::State Runner::advance() {
    bool moved = false;
    while (status_.ok()) {
        moved |= end_begun();
        if (cursor_.finished() || last_begun_ - last_ended_ >= depth_ || !post()) break;
        if (!take_sources()) {
            if (status_.ok() && last_begun_ == last_ended_) return moved ? State::moved : State::idle;
            break;
        }
        if (!begin(cursor_.span())) break;
        moved = true;
        viewed_ = 0;
        if (!cursor_.next()) continue;
        posted_ = false;
        if (!cursor_.finished()) (void)post();
    }
    if (status_.ok() && cursor_.finished() && last_begun_ == last_ended_ && settled()) return State::done;
    return stuck(moved);
}

// What is offered does not get away: because peers are late, or because a link has failed.
Runner::State Runner::stuck(bool moved) {
    if (!status_.ok()) return State::failed;
    for (const Hold& hold : holds_) {
        if (hold.link->status().ok()) continue;
        status_ = hold.link->status();
        return State::failed;
    }
    return moved ? State::moved : State::idle;
}

bool Runner::take_sources() {
    const BoundStep& s = step();
    const size_t bytes = cursor_.span().count * arithmetic_->element;
    for (; viewed_ < s.sources.size(); ++viewed_) {
        View& view = views_[viewed_];
        switch (s.sources[viewed_]->take(view)) {
            case RecvLink::Taken::nothing:
                return false;
            case RecvLink::Taken::broken:
                status_ = s.sources[viewed_]->status();
                return false;
            case RecvLink::Taken::slice:
                break;
        }
        if (view.print != binding_->operation->print || view.bytes != bytes) {
            status_ = differs(s.source_ranks[viewed_], view);
            return false;
        }
        FlightRecorder::Progress::count(s.source_progress[viewed_]->received);
    }
    return true;
}

// ---- beginning a slice ----

// Begins the current slice; false if the stage has no room yet, or with status_ if a source has withdrawn.
bool Runner::begin(Span span) {
    const BoundStep& s = step();
    Begun& slice = begun(last_begun_);
    slice.step = cursor_.step();
    slice.round = cursor_.round();
    slice.bytes = span.count * arithmetic_->element;
    slice.source = {};
    slice.offers = !s.sinks.empty();
    slice.held = false;
    slice.since = slice_since_;

    // Only its own operand, unchanged: there is nothing to compute before offering, and what this rank keeps of it can wait.
    const bool publishes =
        slice.offers && s.sources.empty() && !s.finish && (!arithmetic_->scale || s.local.buffer != Buffer::send);
    const Region& region = publishes ? s.local : s.dest;
    std::byte* const home = region.exists() ? local_memory(region, span.begin) : nullptr;
    std::byte* const dest = s.dest.exists() ? local_memory(s.dest, span.begin) : nullptr;
    if (slice.offers && !place(slice, home, region)) return false;

    auto* const out = const_cast<std::byte*>(slice.source.data);
    std::byte* const result = publishes ? home : dest != nullptr ? dest : out;
    if (!publishes && result != nullptr) {
        if (!pin(slice)) return false;
        if (span.count != 0) reduce(result, span);
    }
    if (out != nullptr && out != result && span.count != 0) device_->copy(lane_, out, result, slice.bytes, false);
    push(slice, !publishes || out != home);

    if (publishes && dest != nullptr) {
        (void)end_begun();
        Begun& kept = begun(last_begun_);
        kept.step = cursor_.step();
        kept.round = cursor_.round();
        kept.source = {};
        kept.offers = false;
        if (span.count != 0) reduce(dest, span);
        push(kept, true);
    }
    return status_.ok();
}

// Decides where the slice is offered from: `home`, which lies in `region`, if the sinks take it there. False: no room yet.
bool Runner::place(Begun& slice, std::byte* home, const Region& region) {
    const BoundStep& s = step();
    if (slice.bytes <= s.inline_bytes) {
        slice.source = {home != nullptr ? home : work_, slice.bytes, nullptr};
        return true;
    }
    const Source standing{home, slice.bytes, region.exists() ? block_of(region) : nullptr, s.fetch};
    if (home != nullptr && !s.stage && !s.through_host && slice.bytes > eager_bytes_ &&
        std::all_of(s.sinks.begin(), s.sinks.end(), [&](SendLink* sink) { return sink->takes(standing); })) {
        slice.source = standing;
        slice.held = true;
        return true;
    }
    Stage& stage = s.through_host ? *stages_.host : *stages_.device;
    std::byte* copy = stage.allocate(slice.bytes);
    if (copy == nullptr) return false;
    slice.source = {copy, slice.bytes, stage.block()};
    stage.commit();
    for (size_t i = 0; i < s.sinks.size(); ++i) stage.await(*s.sinks[i], s.sinks[i]->offered() + holds_[s.holds[i]].ahead + 1);
    return true;
}

// `works`: the device has been given something to do for it.
void Runner::push(Begun& slice, bool works) {
    slice.ticket = works ? device_->mark(lane_) : 0;
    if (slice.offers)
        for (size_t hold : steps_[slice.step].holds) ++holds_[hold].ahead;
    ++last_begun_;
    if (trace_ != nullptr) slice_since_ = Timeline::now();
}

bool Runner::pin(Begun& slice) {
    const BoundStep& s = step();
    bool stands = true;
    for (size_t i = 0; i < s.sources.size(); ++i) {
        if (!views_[i].lent) continue;
        slice.pinned[i] = 1;
        stands &= s.sources[i]->pin();
    }
    if (!stands) unpin(slice);
    return stands;
}

// A result of which a source was withdrawn meanwhile must not leave this rank.
void Runner::unpin(Begun& slice) {
    const BoundStep& s = steps_[slice.step];
    for (size_t i = 0; i < s.sources.size(); ++i) {
        if (slice.pinned[i] == 0) continue;
        slice.pinned[i] = 0;
        if (!s.sources[i]->unpin() && status_.ok()) status_ = s.sources[i]->status();
    }
}

// Computes the slice from all operands.
void Runner::reduce(std::byte* out, Span span) {
    const BoundStep& s = step();
    size_t operands = 0;
    for (size_t i = 0; i <= s.sources.size(); ++i) {
        if (i == s.local_place && s.local.exists()) {
            const std::byte* local = local_memory(s.local, span.begin);
            if (arithmetic_->scale && s.local.buffer == Buffer::send) {
                // The input goes through the scalar on its way: straight out if it is alone, else by the value in between.
                std::byte* scaled = s.sources.empty() ? out : work_;
                const void* from[] = {local};
                device_->reduce(lane_, arithmetic_->scale, scaled, from, 1, span.count, binding_->scale, false);
                local = scaled;
            }
            operands_[operands++] = local;
        }
        if (i < s.sources.size()) operands_[operands++] = views_[i].data;
    }
    if (s.finish || (s.reduce && operands > 1)) {
        const Kernel& kernel = s.finish ? arithmetic_->finish : arithmetic_->combine;
        device_->reduce(lane_, kernel, out, operands_.data(), static_cast<int>(operands), span.count, binding_->scale,
                        s.past_caches);
    } else if (operands_[0] != out) {
        device_->copy(lane_, out, operands_[0], span.count * arithmetic_->element, s.past_caches);
    }
}

// ---- ending slices ----

// Ends what has been begun, in order, as far as the device is and the sinks have room. True if anything moved.
bool Runner::end_begun() {
    bool moved = false;
    for (; last_done_ != last_begun_; ++last_done_) {
        Begun& slice = begun(last_done_);
        if (slice.ticket != 0 && !device_->done(lane_, slice.ticket)) break;
        unpin(slice);
        if (!status_.ok()) return moved;
        moved = true;
    }
    for (; last_ended_ != last_done_; ++last_ended_) {
        const Begun& slice = begun(last_ended_);
        const BoundStep& s = steps_[slice.step];
        if (slice.offers) {
            if (!sinks_ready(s)) break;
            offer(s, slice);
        }
        give_back(s, slice);
        moved = true;
    }
    return moved;
}

bool Runner::sinks_ready(const BoundStep& s) const {
    return std::all_of(s.sinks.begin(), s.sinks.end(), [](SendLink* sink) { return sink->ready(); });
}

void Runner::offer(const BoundStep& s, const Begun& slice) {
    for (size_t i = 0; i < s.sinks.size(); ++i) {
        Hold& hold = holds_[s.holds[i]];
        s.sinks[i]->offer(binding_->operation->print, slice.source);
        if (slice.held) hold.until = s.sinks[i]->offered();
        --hold.ahead;
        FlightRecorder::Progress::count(s.sink_progress[i]->offered);
        if (trace_ != nullptr) trace_->offered(hold.rank, lane_, *s.sinks[i], binding_->operation->print, slice.source.bytes);
    }
}

void Runner::give_back(const BoundStep& s, const Begun& slice) {
    for (size_t i = 0; i < s.sources.size(); ++i) {
        s.sources[i]->release();
        if (trace_ != nullptr) trace_->received(s.source_ranks[i], lane_, binding_->operation->print, slice.bytes, slice.since);
    }
}

// Whether peers have taken what they were shown of the caller's memory, and nothing else needs this rank's CPU.
bool Runner::settled() {
    for (Hold& hold : holds_) {
        if (hold.until != 0 && hold.link->taken() < hold.until) return false;
        hold.until = 0;
        if (!hold.link->flushed()) return false;
    }
    return true;
}

int Runner::waits_for() {
    const bool waits_for_device = last_done_ != last_begun_, waits_for_room = last_ended_ != last_done_;
    if (!cursor_.finished() && last_begun_ - last_ended_ < depth_ && viewed_ < step().sources.size())
        return step().source_ranks[viewed_];
    if (waits_for_device && !waits_for_room) return -1;
    for (const Hold& hold : holds_) {
        const bool full = waits_for_room && !hold.link->ready();
        if (full || hold.link->taken() < hold.until || !hold.link->flushed()) return hold.rank;
    }
    // The stage is full of what a peer has not taken.
    for (const Hold& hold : holds_)
        if (hold.link->taken() < hold.link->offered()) return hold.rank;
    return -1;
}

void Runner::abandon() {
    for (; last_done_ != last_begun_; ++last_done_) unpin(begun(last_done_));
}

Status Runner::differs(int source, const View& view) const {
    const Fingerprint& mine = binding_->operation->print;
    const Status status = disagreement(binding_->rank, mine, source, view.print);
    if (!status.ok()) return status;
    return failure(ringMismatch,
                   "the ranks cut {} differently: rank {} sent a slice of {} bytes where rank {} expects {}; they may run "
                   "different builds of the library, or something between them changed the bytes",
                   name_of(mine), source, view.bytes, binding_->rank, cursor_.span().count * arithmetic_->element);
}

}  // namespace ringccl
