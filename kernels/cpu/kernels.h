// CPU reduce kernels: one table of (type x op). docs/numerics.md says what they promise to the bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/op.h"
#include "ringccl/ringccl.h"

namespace ringccl {

// What a kernel needs beside its operands.
struct Scale {
    int divisor = 1;           // of avg: the number of inputs that the sum holds
    double scalar = 1.0;       // of premul for float types
    uint64_t scalar_bits = 0;  // of premul for integer types: the scalar's bytes, little end first
};

// dst[i] = op over k of src[k][i], 0 <= i < count, combined in the order src[0], src[1], ...; 1 <= k. dst may be one of the
// sources (same start); else no overlap. Any alignment down to one byte.
//   sum, prod, max, min: k inputs. Floats of 8 and 16 bits are combined in float32 and rounded once. One input is copied.
//   avg:    the sum of the k inputs, divided by scale.divisor: floats in float32 or wider, before the one rounding; integers
//           in 64 bits (128 for 64-bit types), truncated toward zero.
//   premul: k == 1: dst[i] = src[0][i] * scalar. (Sums of products are `sum` over such results.)
using ReduceKernel = void (*)(void* dst, const void* const* src, int k, size_t count, const Scale& scale);

// Never null for a known type and an op other than none.
ReduceKernel reduce_kernel(ringDataType_t type, Op op);

// memcpy that bypasses the cache on the way out when `streaming`: for results that do not stay in a cache anyway and that no
// peer reads next. Such stores are weakly ordered: flush_streams() must come before a flag that tells others of them.
void copy_bytes(void* dst, const void* src, size_t bytes, bool streaming);
void flush_streams();

// The instruction set that runs, as Highway calls it, e.g. "AVX3" for AVX-512; for ringccl-info.
const char* kernel_target();

}  // namespace ringccl
