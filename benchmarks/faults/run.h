// One world of ranks, one fault, and what became of all.
#pragma once

#include <nlohmann/json.hpp>
#include <random>

#include "faults/fault.h"

namespace ringccl::faults {

struct Scene {
    const Fault& fault;
    int ranks;
    const char* transport;
    int victim;
    int limit_s;  // who has not answered so long after the fault is ended
};

// {"fault", "ranks", "transport", "victim", "others": [seats], "self": seat, "names": [left in /dev/shm]} or {"failed": why};
// seats as run.cc makes them.
nlohmann::json run(const Scene& scene, std::mt19937& random);

}  // namespace ringccl::faults
