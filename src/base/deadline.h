// A point in time after which waiting is given up.
#pragma once

#include <algorithm>
#include <chrono>

namespace ringccl {

class Deadline {
public:
    using Clock = std::chrono::steady_clock;

    static Deadline after(std::chrono::milliseconds span) { return Deadline(Clock::now() + span); }

    explicit Deadline(Clock::time_point at) : at_(at) {}

    bool passed() const { return Clock::now() >= at_; }
    Clock::time_point at() const { return at_; }

    // What is left, never negative, rounded up so that a poll() with it does not wake just before the end.
    std::chrono::milliseconds left() const {
        auto span = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now());
        return std::max(span, std::chrono::milliseconds(0));
    }

private:
    Clock::time_point at_;
};

}  // namespace ringccl
