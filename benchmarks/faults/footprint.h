// What a process holds that a library could leave behind in it, or behind it.
#pragma once

#include <set>
#include <string>

namespace ringccl::faults {

struct Footprint {
    int descriptors = 0, threads = 0;
    int shared_mappings = 0;

    static Footprint now();
    bool within(const Footprint& other) const {
        return descriptors <= other.descriptors && threads <= other.threads && shared_mappings <= other.shared_mappings;
    }
};

// Everything in /dev/shm, and the System V segments.
std::set<std::string> shared_names();

}  // namespace ringccl::faults
