// Input data that differs per rank and per index, and the one right result of every reduction of it. The values are chosen so
// that no intermediate result is rounded, in whatever order the ranks are combined: small integers for sums, powers of two for
// products. So a test compares bits. (Averages are rounded once, in the division, and that is predicted too.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/operation.h"

namespace ringccl::test {

// Up to this many ranks the promise above holds for every type; for float64 and the integers it holds for hundreds.
constexpr int kMostExactRanks = 8;

inline constexpr ringDataType_t kAllTypes[] = {ringInt8,    ringUint8,    ringInt32,      ringUint32,
                                               ringInt64,   ringUint64,   ringFloat16,    ringFloat32,
                                               ringFloat64, ringBfloat16, ringFloat8e4m3, ringFloat8e5m2};
inline constexpr Op kAllOps[] = {Op::sum, Op::prod, Op::max, Op::min, Op::avg, Op::premul};

// The public operation for op; premul has none of its own.
ringRedOp_t public_op(Op op);

// Writes elements first .. first + count - 1 of rank's input for this operation (Op::none: data that is only moved).
void put_inputs(std::byte* at, ringDataType_t type, Op op, int rank, size_t first, size_t count);

// Writes what op over the inputs of ranks 0 .. world - 1 must give for the same elements.
void put_results(std::byte* at, ringDataType_t type, Op op, int world, size_t first, size_t count);

// One element: the factor that `rank` uses with Op::premul.
std::vector<std::byte> premul_scalar(ringDataType_t type, int rank);

}  // namespace ringccl::test
