// How many CPUs this process may really use: what its affinity mask and its control groups leave of the machine.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

namespace ringccl {

struct CpuLimits {
    int affinity = 1;                                        // CPUs in the calling thread's mask
    double quota = std::numeric_limits<double>::infinity();  // CPU seconds per second that the control groups grant

    // The least of both, a started CPU counting as a whole one; at least 1.
    int usable() const;
};

// Looks now; nothing is remembered. `root` stands before /proc and /sys, for tests. What cannot be read does not limit.
CpuLimits cpu_limits(const std::string& root = "");

int usable_cpus();

// Bytes of the largest cache of a CPU, 32 MiB if nobody says.
size_t last_level_cache();

}  // namespace ringccl
