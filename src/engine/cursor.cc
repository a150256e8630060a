#include "engine/cursor.h"

#include <algorithm>

namespace ringccl {

void Cursor::start(const std::vector<BoundStep>& steps) {
    *this = {};
    steps_ = &steps;
    finished_ = false;
    enter_step();
}

// Every step moves at least one slice, if only an empty one, so that ranks that disagree always find out.
size_t Cursor::slices_in_window() const {
    const BoundStep& step = current();
    if (window_ >= step.windows) return 0;
    if (step.count <= step.slice) return 1;
    const size_t window = step.slice * kWindowSlices;
    const size_t begin = window_ * window;
    return (std::min(window, step.count - begin) + step.slice - 1) / step.slice;
}

Span Cursor::span(size_t slice) const {
    const BoundStep& step = current();
    const size_t begin = (window_ * kWindowSlices + slice) * step.slice;
    return {begin, begin >= step.count ? 0 : std::min(step.slice, step.count - begin)};
}

// Stands at the first step from step_ on that has something to do, moving through windows and phases.
void Cursor::enter_step() {
    const auto& steps = *steps_;
    for (;;) {
        if (step_ == phase_end_) {
            if (phase_end_ != 0 && ++window_ < phase_windows_) {
                step_ = phase_begin_;
            } else if (phase_end_ == steps.size()) {
                finished_ = true;
                return;
            } else {
                phase_begin_ = step_ = phase_end_;
                window_ = 0;
                phase_windows_ = 1;
                while (phase_end_ < steps.size() && steps[phase_end_].phase == steps[phase_begin_].phase)
                    phase_windows_ = std::max(phase_windows_, steps[phase_end_++].windows);
            }
        }
        slices_ = slices_in_window();
        if (slices_ != 0) break;
        ++step_;
    }
    slice_ = 0;
    ++round_;
}

bool Cursor::next() {
    if (++slice_ < slices_) return false;
    ++step_;
    enter_step();
    return true;
}

}  // namespace ringccl
