// The cheapest clock of the machine, for times that are taken on the way of an operation and read much later, if ever.
#pragma once

#include <chrono>
#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace ringccl {

using Ticks = uint64_t;

// Whether the processor's counter runs at one rate on all CPUs and through all sleep states, by the kernel's word.
bool counter_is_clock();

inline Ticks ticks() {
#if defined(__x86_64__)
    static const bool trusted = counter_is_clock();
    if (trusted) [[likely]]
        return __rdtsc();
#elif defined(__aarch64__)
    Ticks value;
    asm volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#endif
    return static_cast<Ticks>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// What ticks mean in time. The rate is measured from the first scale of the process to this one, so times between the two are
// good to a fraction of a microsecond, however close together the two are.
class TickScale {
public:
    static TickScale now();

    int64_t steady_ns(Ticks at) const;  // on the steady clock, which all processes of a host share
    int64_t unix_us(Ticks at) const;
    Ticks at() const { return at_; }  // of this scale
    double ns_per_tick() const { return ns_per_tick_; }
    int64_t unix_us_of_steady_zero() const { return unix_offset_ns_ / 1000; }

private:
    Ticks at_ = 0;
    int64_t steady_ns_ = 0;
    int64_t unix_offset_ns_ = 0;
    double ns_per_tick_ = 1;
};

}  // namespace ringccl
