#include "engine/patience.h"

#include <sched.h>

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ringccl {
namespace {

// Polling without a yield.
constexpr std::chrono::microseconds kQuiet(2);

inline void relax() {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace

Patience::Next Patience::idle() {
    if (spin_.count() > 0) {
        // The clock is read once per 16 looks: reading it costs about as much as a look, and most waits are over before the
        // first.
        if (++looks_ % 16 == 0) {
            const auto now = std::chrono::steady_clock::now();
            if (looks_ == 16) since_ = now;
            elapsed_ = now - since_;
        }
        if (elapsed_ < std::min<std::chrono::nanoseconds>(kQuiet, spin_)) {
            relax();
            return Next::poll;
        }
        if (elapsed_ < spin_) {
            sched_yield();
            return Next::poll;
        }
    }
    if (yields_left_ == 0) return Next::sleep;
    --yields_left_;
    sched_yield();
    return Next::poll;
}

}  // namespace ringccl
