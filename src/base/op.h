// The arithmetic of a reduction. Alone in its file so that kernels, which other compilers read too, need nothing else of an
// operation.
#pragma once

#include <cstdint>

namespace ringccl {

// `premul` is sum over inputs that are each multiplied by their rank's own scalar first.
enum class Op : uint8_t { none, sum, prod, max, min, avg, premul };

}  // namespace ringccl
