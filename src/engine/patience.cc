#include "engine/patience.h"

#include <sched.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ringccl {
namespace {

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
        // The clock is read once per 32 looks: reading it costs about as much as a look.
        if (polls_ == 0) since_ = std::chrono::steady_clock::now();
        if (++polls_ % 32 != 0 || std::chrono::steady_clock::now() - since_ < spin_) {
            relax();
            return Next::poll;
        }
    }
    if (yields_left_ > 0) {
        --yields_left_;
        sched_yield();
        return Next::poll;
    }
    return Next::sleep;
}

}  // namespace ringccl
