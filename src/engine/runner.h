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

#include "engine/stage.h"
#include "kernels/cpu/kernels.h"
#include "plan/plan.h"
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
    std::vector<SendLink*> sinks;
    std::vector<size_t> holds;  // for each sink, its place in Runner::holds_
    size_t inline_bytes = 0;    // the largest slice that every sink's link copies
    size_t local_place = 0;     // of the local operand among the operands, in rank order
    size_t count = 0;           // elements
    size_t slice = 1;           // elements
    Region local, dest;
    int phase = 0;
    bool reduce = false, finish = false, stage = false;
};

class Runner {
public:
    enum class State { idle, moved, done, failed };

    Runner(std::vector<BoundStep> steps, std::vector<SendLink*> sinks, int lane);

    int lane() const { return lane_; }
    size_t largest_slice(size_t element) const;  // bytes
    size_t most_sources() const;

    // `scratch` serves landings and scaled inputs: scratch_bytes() of it.
    size_t scratch_bytes(const Arithmetic& arithmetic) const;
    void start(const Binding& binding, const Arithmetic& arithmetic, Stage& stage, std::byte* scratch);
    State advance();
    // What went wrong, after `failed`.
    const Status& status() const { return status_; }
    // The rank that the current step waits for, or -1.
    int waits_for() const;

private:
    struct Span {
        size_t begin, count;  // elements of the step
    };
    struct Hold {
        SendLink* link;
        uint64_t until;
    };

    const BoundStep& step() const { return steps_[step_]; }
    size_t windows(const BoundStep& step) const;
    size_t slices_in_window() const;
    Span slice_span(size_t slice) const;
    std::byte* local_memory(const Region& region, size_t begin) const;
    const SharedBlock* block_of(const Region& region) const;
    std::byte* landing(size_t source, size_t slice) const;

    void enter_step();
    bool take_sources();
    bool sinks_ready() const;
    bool carry_out(Span span);
    void combine(std::byte* out, Span span);
    void offer(const Source& source, bool held);
    void next_slice();
    bool settled();
    State stuck(bool moved);
    Status disagreement(int source, const View& view) const;

    std::vector<BoundStep> steps_;
    int lane_;
    std::vector<Hold> holds_;
    std::vector<View> views_;
    std::vector<const void*> operands_;

    const Binding* binding_ = nullptr;
    const Arithmetic* arithmetic_ = nullptr;
    Stage* stage_ = nullptr;
    std::byte* scratch_ = nullptr;

    size_t largest_slice_ = 0;                // bytes, rounded up to Stage::kAlign
    size_t phase_begin_ = 0, phase_end_ = 0;  // steps of the current phase
    size_t phase_windows_ = 0;
    size_t step_ = 0, window_ = 0, slice_ = 0;
    size_t slices_ = 0;  // of the current step in the current window
    size_t viewed_ = 0;  // sources of the current slice that have been taken
    bool running_ = false;
    Status status_;
};

}  // namespace ringccl
