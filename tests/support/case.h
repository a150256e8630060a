// One collective call with known data: made, and everything that it must and must not write checked.
#pragma once

#include <string>

#include "base/operation.h"
#include "support/member.h"

namespace ringccl::test {

inline constexpr Kind kReductions[] = {Kind::all_reduce, Kind::scatter_reduce, Kind::reduce};
inline constexpr Kind kMoves[] = {Kind::all_gather, Kind::broadcast, Kind::gather, Kind::scatter, Kind::all_to_all};

struct Case {
    Kind kind = Kind::all_reduce;
    ringDataType_t type = ringFloat32;
    Op op = Op::sum;  // ignored by the kinds that only move data
    size_t count = 0;
    bool in_place = false;
    int root = 0;
    size_t shift = 0;  // bytes that the buffers begin past a 64-byte boundary

    std::string text() const;
};

// Carries the case out on this rank, with buffers where every byte has a known value before and after: the result, the rest of
// the buffers, and the guard bands around them. Synchronises me.stream if there is one.
Verdict run_case(const Member& me, const Case& c);

}  // namespace ringccl::test
