// Runs one channel of a plan: for each phase, for each window, for each step, for each slice: take, combine, put, offer.
// advance() does what can be done now and never waits.
//
// Where a result goes, and how often its bytes are touched, is decided per slice from what the sinks' links can take:
//   - a slice small enough to travel inside a message is offered from anywhere, and free at once;
//   - the caller's own memory is offered as it stands if every sink takes it there, and held until they have;
//   - otherwise a copy in the stage is offered, which outlives the operation.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/slice_trace.h"
#include "engine/stage.h"
#include "kernels/cpu/kernels.h"
#include "plan/plan.h"
#include "trace/flight_recorder.h"
#include "transports/transport.h"

namespace ringccl {

// The kernels of one operation.
struct Arithmetic {
    size_t element = 1;              // bytes
    ReduceKernel combine = nullptr;  // a step that reduces
    ReduceKernel finish = nullptr;   // the same where the result is final
    ReduceKernel scale = nullptr;    // premul: what an input goes through first
    int divisor = 1;
};

// An operation with its buffers as the engine sees them.
struct Binding {
    const Operation* operation = nullptr;
    int rank = 0;  // this one
    const std::byte* send = nullptr;
    std::byte* recv = nullptr;
    const SharedBlock* send_block = nullptr;  // the shared block that holds the buffer, or null
    const SharedBlock* recv_block = nullptr;
    Scale scale;
};

// A step with its links.
struct BoundStep {
    std::vector<RecvLink*> sources;
    std::vector<int> source_ranks;
    std::vector<FlightRecorder::Progress*> source_progress;
    std::vector<SendLink*> sinks;
    std::vector<FlightRecorder::Progress*> sink_progress;
    std::vector<size_t> holds;  // for each sink, its place in Runner::holds_
    size_t inline_bytes = 0;    // the largest slice that every sink's link copies
    bool stream = false;        // the result bypasses the caches
    bool fetch = false;         // what is offered goes to one peer, which copies it as it is and not past the caches
    size_t local_place = 0;     // of the local operand among the operands, in rank order
    size_t count = 0;           // elements
    size_t slice = 1;           // elements
    size_t windows = 1;         // filled by the runner
    Region local, dest;
    int phase = 0;
    bool reduce = false, finish = false, stage = false;
};

class Runner {
public:
    enum class State { idle, moved, done, failed };

    // Each rank that some step offers to, once, with its link.
    struct Sink {
        int rank;
        SendLink* link;
    };
    Runner(std::vector<BoundStep> steps, std::vector<Sink> sinks, int lane, const Arithmetic& arithmetic);

    int lane() const { return lane_; }
    // What start() must be given for landings and scaled inputs.
    size_t scratch_bytes() const { return scratch_bytes_; }
    // `trace`: null, or who is told of every slice.
    void start(const Binding& binding, Stage& stage, std::byte* scratch, SliceTrace* trace);
    State advance();
    // What went wrong, after `failed`.
    const Status& status() const { return status_; }
    // A rank that must do something before this one can go on, or -1.
    int waits_for();

private:
    struct Span {
        size_t begin, count;  // elements of the step
    };
    struct Hold {
        int rank;
        SendLink* link;
        uint64_t until;
    };

    size_t most_sources() const;
    size_t largest_slice() const;
    bool needs_scratch() const;
    const BoundStep& step() const { return steps_[step_]; }
    size_t slices_in_window() const;
    Span slice_span(size_t slice) const;
    std::byte* local_memory(const Region& region, size_t begin) const;
    const SharedBlock* block_of(const Region& region) const;
    std::byte* landing(size_t source, size_t slice) const;

    void enter_step();
    bool take_sources();
    bool sinks_ready() const;
    bool carry_out(Span span);
    bool combine(std::byte* out, Span span);
    void reduce(std::byte* out, Span span);
    void run_kernel(ReduceKernel kernel, std::byte* out, size_t operands, size_t count);
    void offer(const Source& source, bool held);
    void trace_received();
    void next_slice();
    bool settled();
    State stuck(bool moved);
    Status differs(int source, const View& view) const;

    std::vector<BoundStep> steps_;
    int lane_;
    const Arithmetic* arithmetic_;
    size_t largest_slice_;  // bytes, rounded up to Stage::kAlign
    size_t scratch_bytes_;
    size_t eager_bytes_ = 0;  // what is larger need not be copied, only for its owner to go on
    std::vector<Hold> holds_;
    std::vector<View> views_;
    std::vector<const void*> operands_;

    const Binding* binding_ = nullptr;
    Stage* stage_ = nullptr;
    std::byte* scratch_ = nullptr;
    SliceTrace* trace_ = nullptr;
    Timeline::Ticks slice_since_ = 0;  // when the current slice became the current one; only with a trace

    size_t phase_begin_ = 0, phase_end_ = 0;  // steps of the current phase
    size_t phase_windows_ = 0;
    size_t step_ = 0, window_ = 0, slice_ = 0;
    size_t slices_ = 0;  // of the current step in the current window
    size_t viewed_ = 0;  // sources of the current slice that have been taken
    bool running_ = false;
    Status status_;
};

}  // namespace ringccl
