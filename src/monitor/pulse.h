// The rhythm of a lifeline's end: when to say that one lives, and whether the other's silence may be held against it.
#pragma once

#include <chrono>

#include "base/deadline.h"

namespace ringccl {

class Pulse {
public:
    using Clock = Deadline::Clock;

    // `silence`: who says nothing for so long counts as stopped. 0: never, and nothing beats.
    Pulse(std::chrono::milliseconds silence, Clock::time_point now);

    enum class Beat {
        none,
        due,    // say that this end lives, and see who is silent
        slept,  // the same, but this end itself was stopped or suspended: what others said meanwhile is not read yet
    };
    Beat tick(Clock::time_point now);
    Clock::time_point next() const { return next_; }  // when to tick; Clock::time_point::max(): never

    bool silent(Clock::time_point heard, Clock::time_point now) const {
        return silence_.count() > 0 && now - heard >= silence_;
    }

private:
    std::chrono::milliseconds silence_;
    Clock::time_point next_ = Clock::time_point::max();
};

}  // namespace ringccl
