// Where a runner stands in its steps: for each phase, for each window, for each step of the phase, for each slice.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/bound_step.h"

namespace ringccl {

// Slices per window: what may be on its way on a link before the receiver takes any. Twice this fits into a link, because a
// plan may offer a window of one step and of the next to the same peer before the first is taken.
constexpr size_t kWindowSlices = 4;
static_assert(2 * kWindowSlices <= kLinkDepth);

struct Span {
    size_t begin, count;  // elements of the step
};

class Cursor {
public:
    // Before the first step, or behind the last: finished().
    void start(const std::vector<BoundStep>& steps);
    bool finished() const { return finished_; }

    size_t step() const { return step_; }
    size_t slice() const { return slice_; }    // in the window
    size_t slices() const { return slices_; }  // of the step in the window
    Span span() const { return span(slice_); }
    Span span(size_t slice) const;
    // Steps entered so far.
    size_t round() const { return round_; }

    // On to the next slice; true if that is in another step, or the end.
    bool next();

private:
    const BoundStep& current() const { return (*steps_)[step_]; }
    void enter_step();
    size_t slices_in_window() const;

    const std::vector<BoundStep>* steps_ = nullptr;
    size_t phase_begin_ = 0, phase_end_ = 0;  // steps of the current phase
    size_t phase_windows_ = 0;
    size_t step_ = 0, window_ = 0, slice_ = 0, slices_ = 0, round_ = 0;
    bool finished_ = true;
};

}  // namespace ringccl
