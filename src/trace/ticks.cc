#include "trace/ticks.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace ringccl {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

struct Pair {
    Ticks ticks = 0;
    int64_t steady_ns = 0;
};

int64_t steady() {
    return std::chrono::duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

// Both clocks at one moment: of a few tries the one that was interrupted least.
Pair both() {
    Pair best;
    Ticks narrowest = ~Ticks{0};
    for (int i = 0; i < 5; ++i) {
        const Ticks before = ticks();
        const int64_t middle = steady();
        const Ticks after = ticks();
        if (after - before >= narrowest) continue;
        narrowest = after - before;
        best = {before + narrowest / 2, middle};
    }
    return best;
}

}  // namespace

bool counter_is_clock() {
    // The kernel leaves the counter for these when it has caught it running unevenly.
    std::ifstream source("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    std::string name;
    if (source >> name && (name == "hpet" || name == "acpi_pm" || name == "jiffies" || name == "refined-jiffies")) return false;
    std::ifstream cpus("/proc/cpuinfo");
    for (std::string line; std::getline(cpus, line);) {
        if (!line.starts_with("flags")) continue;
        bool constant = false, nonstop = false;
        std::istringstream flags(line);
        for (std::string flag; flags >> flag;) {
            constant |= flag == "constant_tsc";
            nonstop |= flag == "nonstop_tsc";
        }
        return constant && nonstop;
    }
    return false;
}

TickScale TickScale::now() {
    static const Pair first = both();
    const Pair last = both();
    TickScale scale;
    scale.at_ = last.ticks;
    scale.steady_ns_ = last.steady_ns;
    if (last.ticks > first.ticks && last.steady_ns > first.steady_ns)
        scale.ns_per_tick_ =
            static_cast<double>(last.steady_ns - first.steady_ns) / static_cast<double>(last.ticks - first.ticks);
    const auto real = std::chrono::system_clock::now().time_since_epoch();
    scale.unix_offset_ns_ = std::chrono::duration_cast<nanoseconds>(real).count() - steady();
    return scale;
}

int64_t TickScale::steady_ns(Ticks at) const {
    // The difference is signed: counters of two CPUs may be a few ticks apart.
    return steady_ns_ + static_cast<int64_t>(static_cast<double>(static_cast<int64_t>(at - at_)) * ns_per_tick_);
}

int64_t TickScale::unix_us(Ticks at) const {
    return (steady_ns(at) + unix_offset_ns_) / 1000;
}

}  // namespace ringccl
