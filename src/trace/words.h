// Words for what is recorded, the same in dumps and timelines.
#pragma once

#include <string>

#include "base/operation.h"

namespace ringccl {

// What the caller called: the fingerprint of a point-to-point call says `send` at both ends.
Kind called(const Operation& operation);

// "ringTimeout".
std::string result_name(ringResult_t result);

}  // namespace ringccl
