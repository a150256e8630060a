// What can be done to one rank, the victim, while all work.
#pragma once

#include <string_view>
#include <vector>

#include "ringccl/ringccl.h"

namespace ringccl::faults {

enum class Work { mix, pairs, group, stream };  // work.h

enum class Deed {
    nothing,  // all ranks end together, for comparison
    // By the parent, at a moment that no rank knows:
    kill,
    stop,
    // By the victim, when told:
    exit,
    abort,
    destroy,
    other_count,
    other_type,
    other_collective,
    stay_away,
};

struct Fault {
    const char* name;
    const char* text;  // what the victim does or suffers, for people
    Deed deed;
    Work work;
    ringResult_t others;  // what the other ranks must answer
    bool held = false;    // the victim stops calling first, so that all others are blocked when it happens
    int timeout_ms = 10'000;
    const char* heartbeat_ms = nullptr;
};

const std::vector<Fault>& all_faults();
const Fault* find_fault(std::string_view name);

}  // namespace ringccl::faults
