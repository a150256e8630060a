// A rank that is late to every operation makes all others wait, and no error says so.
#pragma once

#include <optional>
#include <string>

#include "ward.h"

namespace ringccl::doctor {

struct Straggler {
    int rank = 0;
    std::string sentence;
};

// A rank that begins nearly all collectives last, by a millisecond or more.
std::optional<Straggler> straggler(const Ward& ward);

}  // namespace ringccl::doctor
