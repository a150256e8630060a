#include "monitor/pulse.h"

namespace ringccl {
namespace {

// A quarter of the silence: three beats may be lost in a busy machine before a fourth is missed.
std::chrono::milliseconds pause(std::chrono::milliseconds silence) {
    return std::max(silence / 4, std::chrono::milliseconds(1));
}

}  // namespace

Pulse::Pulse(std::chrono::milliseconds silence, Clock::time_point now) : silence_(silence) {
    if (silence.count() > 0) next_ = now + pause(silence);
}

Pulse::Beat Pulse::tick(Clock::time_point now) {
    if (now < next_) return Beat::none;
    const bool slept = now - next_ > silence_ / 2;
    next_ = now + pause(silence_);
    return slept ? Beat::slept : Beat::due;
}

}  // namespace ringccl
