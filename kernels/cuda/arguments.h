// What a reduce kernel is called with. Made on the host, where alignments are looked at once for all threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/kernels.h"

namespace ringccl::cuda {

constexpr int kMaxOperands = 128;
constexpr size_t kVectorBytes = 16;

// Trivially copyable: it travels as the kernel's only parameter. Without padding, in which remains of the stack could look like
// addresses to whoever checks parameters word by word.
struct ReduceArguments {
    void* dst;
    size_t count;
    size_t head;     // elements before the first vector; dst is aligned behind them
    size_t vectors;  // of 16 bytes; the elements behind them are the tail
    double scalar;   // these and the divisor as in Scale
    uint64_t scalar_bits;
    uint64_t reciprocal;  // floor((2^64 - 1) / divisor), for averages of integers
    int divisor;
    int k;
    const void* src[kMaxOperands];
};
static_assert(sizeof(ReduceArguments) == (8 + kMaxOperands) * sizeof(void*));

// 1 <= k <= kMaxOperands. What dst and the sources are to each other is as for the CPU kernels.
inline ReduceArguments reduce_arguments(void* dst, const void* const* src, int k, size_t count, size_t element_bytes,
                                        const Scale& scale) {
    ReduceArguments arguments{
        dst,           count, count, 0, scale.scalar, scale.scalar_bits, ~uint64_t{0} / static_cast<uint64_t>(scale.divisor),
        scale.divisor, k,     {}};
    std::copy(src, src + k, arguments.src);

    // A dst between two places for elements, which no allocator gives, never gets to a place for a vector.
    const size_t past = reinterpret_cast<uintptr_t>(dst) % kVectorBytes;
    if (past % element_bytes != 0) return arguments;
    size_t head = (kVectorBytes - past) % kVectorBytes;
    // A source that lies otherwise is read as whole aligned vectors, and what is needed is shifted out of two of them. The
    // first and the last vector are left to the elements, so that it is never read beyond its ends.
    const bool alike = std::all_of(
        src, src + k, [&](const void* source) { return reinterpret_cast<uintptr_t>(source) % kVectorBytes == past; });
    const size_t margin = alike ? 0 : kVectorBytes;
    head += margin;
    if (const size_t bytes = count * element_bytes; bytes >= head + margin + kVectorBytes) {
        arguments.head = head / element_bytes;
        arguments.vectors = (bytes - head - margin) / kVectorBytes;
    }
    return arguments;
}

}  // namespace ringccl::cuda
