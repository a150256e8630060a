#include "engine/runner.h"

#include <algorithm>
#include <cstring>

#include "engine/program.h"

namespace ringccl {
namespace {

constexpr size_t kPiece = 16 << 10;  // bytes: half of a small first-level cache
// Bytes: a rank that takes nothing, as the root of a broadcast, is done sooner with a copy than when peers have read this much.
constexpr size_t kEager = 1 << 10;

}  // namespace

Runner::Runner(std::vector<BoundStep> steps, std::vector<Sink> sinks, int lane, const Arithmetic& arithmetic)
    : steps_(std::move(steps)), lane_(lane), arithmetic_(&arithmetic), largest_slice_(largest_slice()) {
    for (const Sink& sink : sinks) holds_.push_back({sink.rank, sink.link, 0});
    views_.resize(std::max<size_t>(1, most_sources()));
    operands_.resize(most_sources() + 1);
    for (BoundStep& step : steps_) {
        const size_t window = step.slice * kWindowSlices;
        step.windows = std::max<size_t>(1, (step.count + window - 1) / window);
    }
    if (most_sources() == 0) eager_bytes_ = kEager;
    // One slice for a scaled or forwarded value, then a landing for every source and slice of a window.
    scratch_bytes_ = needs_scratch() ? (1 + most_sources() * kWindowSlices) * largest_slice_ : 0;
}

size_t Runner::most_sources() const {
    size_t most = 0;
    for (const BoundStep& step : steps_) most = std::max(most, step.sources.size());
    return most;
}

size_t Runner::largest_slice() const {
    size_t most = 0;
    for (const BoundStep& step : steps_) most = std::max(most, std::min(step.slice, std::max<size_t>(step.count, 1)));
    return (most * arithmetic_->element + Stage::kAlign - 1) / Stage::kAlign * Stage::kAlign;
}

// Not where every step puts what it takes straight into the caller's buffer or offers what stands there unchanged.
bool Runner::needs_scratch() const {
    return arithmetic_->scale != nullptr || std::any_of(steps_.begin(), steps_.end(), [](const BoundStep& s) {
               return s.reduce || (s.sources.empty() ? s.local.buffer == Buffer::none : !s.dest.exists());
           });
}

void Runner::start(const Binding& binding, Stage& stage, std::byte* scratch, SliceTrace* trace) {
    binding_ = &binding;
    stage_ = &stage;
    scratch_ = scratch;
    trace_ = trace;
    if (trace_ != nullptr) slice_since_ = Timeline::now();
    for (Hold& hold : holds_) hold.until = 0;
    status_ = {};
    running_ = true;
    phase_end_ = 0;
    step_ = 0;
    enter_step();
}

// Every step moves at least one slice, if only an empty one, so that ranks that disagree always find out.
size_t Runner::slices_in_window() const {
    if (window_ >= step().windows) return 0;
    if (step().count <= step().slice) return 1;
    const size_t window = step().slice * kWindowSlices;
    const size_t begin = window_ * window;
    return (std::min(window, step().count - begin) + step().slice - 1) / step().slice;
}

Runner::Span Runner::slice_span(size_t slice) const {
    const size_t begin = (window_ * kWindowSlices + slice) * step().slice;
    return {begin, begin >= step().count ? 0 : std::min(step().slice, step().count - begin)};
}

std::byte* Runner::local_memory(const Region& region, size_t begin) const {
    std::byte* base = region.buffer == Buffer::send ? const_cast<std::byte*>(binding_->send) : binding_->recv;
    // A buffer may be NULL when there is nothing in it.
    return base == nullptr ? nullptr : base + (region.offset + begin) * arithmetic_->element;
}

const SharedBlock* Runner::block_of(const Region& region) const {
    return region.buffer == Buffer::send ? binding_->send_block : binding_->recv_block;
}

std::byte* Runner::landing(size_t source, size_t slice) const {
    // What is only put somewhere lands there at once.
    if (!step().reduce && step().dest.exists()) return local_memory(step().dest, slice_span(slice).begin);
    const size_t place = 1 + source * kWindowSlices + slice % kWindowSlices;
    return scratch_ + place * largest_slice_;
}

// Stands at the first step from step_ on that has something to do, moving through windows and phases.
void Runner::enter_step() {
    for (;;) {
        if (step_ == phase_end_) {
            if (phase_end_ != 0 && ++window_ < phase_windows_) {
                step_ = phase_begin_;
            } else if (phase_end_ == steps_.size()) {
                running_ = false;
                return;
            } else {
                phase_begin_ = step_ = phase_end_;
                window_ = 0;
                phase_windows_ = 1;
                while (phase_end_ < steps_.size() && steps_[phase_end_].phase == steps_[phase_begin_].phase)
                    phase_windows_ = std::max(phase_windows_, steps_[phase_end_++].windows);
            }
        }
        slices_ = slices_in_window();
        if (slices_ != 0) break;
        ++step_;
    }
    slice_ = 0;
    viewed_ = 0;
    for (size_t s = 0; s < step().sources.size(); ++s)
        for (size_t i = 0; i < slices_; ++i) step().sources[s]->post(landing(s, i), slice_span(i).count * arithmetic_->element);
}

Runner::State Runner::advance() {
    bool moved = false;
    while (running_) {
        if (!take_sources()) {
            if (!status_.ok()) return State::failed;
            return moved ? State::moved : State::idle;
        }
        if (!sinks_ready() || !carry_out(slice_span(slice_))) return stuck(moved);
        for (RecvLink* source : step().sources) source->release();
        if (trace_ != nullptr) trace_received();
        moved = true;
        next_slice();
    }
    return settled() ? State::done : stuck(moved);
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
    const size_t bytes = slice_span(slice_).count * arithmetic_->element;
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

bool Runner::sinks_ready() const {
    const BoundStep& s = step();
    return std::all_of(s.sinks.begin(), s.sinks.end(), [](SendLink* sink) { return sink->ready(); });
}

// Combines the current slice and offers it; false if the stage has no room yet, or with status_ if a source has withdrawn.
bool Runner::carry_out(Span span) {
    const BoundStep& s = step();
    const size_t bytes = span.count * arithmetic_->element;
    std::byte* dest = s.dest.exists() ? local_memory(s.dest, span.begin) : nullptr;
    if (s.sinks.empty()) {
        return dest == nullptr || combine(dest, span);
    }

    // Only its own operand, unchanged: there is nothing to compute before offering, and what this rank keeps of it can wait.
    const bool publishes = s.sources.empty() && !s.finish && (arithmetic_->scale == nullptr || s.local.buffer != Buffer::send);
    const Region& region = publishes ? s.local : s.dest;
    std::byte* home = region.exists() ? local_memory(region, span.begin) : nullptr;
    const auto keep = [&] { return !publishes || dest == nullptr || combine(dest, span); };

    if (bytes <= s.inline_bytes) {
        std::byte* out = home != nullptr ? home : scratch_;
        if (!publishes && !combine(out, span)) return false;
        offer({out, bytes, nullptr}, false);
        return keep();
    }
    const Source standing{home, bytes, region.exists() ? block_of(region) : nullptr, s.fetch};
    if (home != nullptr && !s.stage && bytes > eager_bytes_ &&
        std::all_of(s.sinks.begin(), s.sinks.end(), [&](SendLink* sink) { return sink->takes(standing); })) {
        if (!publishes && !combine(home, span)) return false;
        offer(standing, true);
        return keep();
    }
    std::byte* copy = stage_->allocate(bytes);
    if (copy == nullptr) return false;
    if (publishes) {
        std::memcpy(copy, home, bytes);
    } else {
        if (!combine(dest != nullptr ? dest : copy, span)) return false;
        if (dest != nullptr) std::memcpy(copy, dest, bytes);
    }
    offer({copy, bytes, stage_->block()}, false);
    stage_->commit(s.sinks);
    return keep();
}

// Computes the slice from all operands. A result of which a source was withdrawn meanwhile must not leave this rank.
bool Runner::combine(std::byte* out, Span span) {
    const BoundStep& s = step();
    bool stands = true;
    for (size_t i = 0; i < s.sources.size(); ++i)
        if (views_[i].lent) stands &= s.sources[i]->pin();
    if (stands && span.count != 0) reduce(out, span);
    for (size_t i = 0; i < s.sources.size(); ++i) {
        if (!views_[i].lent) continue;
        stands &= s.sources[i]->unpin();
        if (!stands && status_.ok()) status_ = s.sources[i]->status();
    }
    return stands;
}

void Runner::reduce(std::byte* out, Span span) {
    const BoundStep& s = step();
    size_t operands = 0;
    for (size_t i = 0; i <= s.sources.size(); ++i) {
        if (i == s.local_place && s.local.exists()) {
            const std::byte* local = local_memory(s.local, span.begin);
            if (arithmetic_->scale != nullptr && s.local.buffer == Buffer::send) {
                // The input goes through the scalar on its way: straight out if it is alone, else by the scratch slice.
                std::byte* scaled = s.sources.empty() ? out : scratch_;
                const void* from[] = {local};
                arithmetic_->scale(scaled, from, 1, span.count, binding_->scale);
                local = scaled;
            }
            operands_[operands++] = local;
        }
        if (i < s.sources.size()) operands_[operands++] = views_[i].data;
    }
    ReduceKernel kernel = s.finish ? arithmetic_->finish : s.reduce ? arithmetic_->combine : nullptr;
    if (kernel != nullptr && (operands > 1 || s.finish)) {
        run_kernel(kernel, out, operands, span.count);
    } else if (operands_[0] != out) {
        copy_bytes(out, operands_[0], span.count * arithmetic_->element, s.stream);
    }
    if (s.stream) flush_streams();
}

// A result that bypasses the caches is made in pieces that do not leave the nearest one until they are copied out.
void Runner::run_kernel(ReduceKernel kernel, std::byte* out, size_t operands, size_t count) {
    if (!step().stream) return kernel(out, operands_.data(), static_cast<int>(operands), count, binding_->scale);
    alignas(64) std::byte piece[kPiece];
    const size_t whole = kPiece / arithmetic_->element;
    for (size_t done = 0; done < count; done += whole) {
        const size_t now = std::min(whole, count - done), bytes = now * arithmetic_->element;
        kernel(piece, operands_.data(), static_cast<int>(operands), now, binding_->scale);
        copy_bytes(out, piece, bytes, true);
        out += bytes;
        for (size_t i = 0; i < operands; ++i) operands_[i] = static_cast<const std::byte*>(operands_[i]) + bytes;
    }
}

void Runner::offer(const Source& source, bool held) {
    const BoundStep& s = step();
    for (size_t i = 0; i < s.sinks.size(); ++i) {
        s.sinks[i]->offer(binding_->operation->print, source);
        if (held) holds_[s.holds[i]].until = s.sinks[i]->offered();
        FlightRecorder::Progress::count(s.sink_progress[i]->offered);
        if (trace_ != nullptr)
            trace_->offered(holds_[s.holds[i]].rank, lane_, *s.sinks[i], binding_->operation->print, source.bytes);
    }
}

void Runner::trace_received() {
    for (size_t i = 0; i < step().sources.size(); ++i)
        trace_->received(step().source_ranks[i], lane_, binding_->operation->print, views_[i].bytes, slice_since_);
    slice_since_ = Timeline::now();
}

void Runner::next_slice() {
    viewed_ = 0;
    if (++slice_ < slices_) return;
    ++step_;
    enter_step();
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
    if (running_ && viewed_ < step().sources.size()) return step().source_ranks[viewed_];
    for (const Hold& hold : holds_) {
        const bool full = running_ && !hold.link->ready();
        if (full || hold.link->taken() < hold.until || !hold.link->flushed()) return hold.rank;
    }
    // The stage is full of what a peer has not taken.
    for (const Hold& hold : holds_)
        if (hold.link->taken() < hold.link->offered()) return hold.rank;
    return -1;
}

Status Runner::differs(int source, const View& view) const {
    const Fingerprint& mine = binding_->operation->print;
    const Status status = disagreement(binding_->rank, mine, source, view.print);
    if (!status.ok()) return status;
    return failure(ringMismatch,
                   "the ranks cut {} differently: rank {} sent a slice of {} bytes where rank {} expects {}; they may run "
                   "different builds of the library, or something between them changed the bytes",
                   name_of(mine), source, view.bytes, binding_->rank, slice_span(slice_).count * arithmetic_->element);
}

}  // namespace ringccl
