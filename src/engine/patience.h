// How to wait: poll for a while, then let others have the CPU, then sleep. Polling pays only while the rank waited for is
// running on another CPU; with more ranks than CPUs it keeps that very rank from running, so then we yield at once.
#pragma once

#include <chrono>

namespace ringccl {

class Patience {
public:
    enum class Next { poll, sleep };

    Patience(std::chrono::microseconds spin, int yields) : spin_(spin), yields_left_(yields), yields_(yields) {}

    // Something moved.
    void renew() {
        looks_ = 0;
        elapsed_ = {};
        yields_left_ = yields_;
    }
    // Nothing moved: passes a moment and says whether to look again or to sleep.
    Next idle();

private:
    std::chrono::microseconds spin_;
    int yields_left_, yields_;
    unsigned looks_ = 0;
    std::chrono::steady_clock::time_point since_;
    std::chrono::nanoseconds elapsed_{};
};

}  // namespace ringccl
