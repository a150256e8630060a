// The one kernel, put together from three parts as on the CPU (kernels/cpu/reduce-inl.h): Format, Combine and Finish.
//
// All k sources are combined in registers in one pass, so dst is written once. Threads stride over the grid, whatever its
// shape, and need nothing of each other: no barrier, no shared memory, and each vector of dst is read, if dst is a source, by
// the thread that writes it. Several vectors of a thread are in flight together; memory, not arithmetic, is to be what it waits
// for.
#pragma once

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/arithmetic.cuh"
#include "kernels/cuda/formats.cuh"

namespace ringccl::cuda {

constexpr int kBlockThreads = 256;

RINGCCL_DEVICE const uint8_t* bytes_of(const void* memory) {
    return static_cast<const uint8_t*>(memory);
}

// The 16 bytes that begin `shift` (1 .. 15) bytes after the start of `low`.
RINGCCL_DEVICE Vector shifted(const Vector& low, const Vector& high, uint32_t shift) {
    uint32_t words[8];
    RINGCCL_UNROLL
    for (int i = 0; i < 4; ++i) {
        words[i] = low.words[i];
        words[i + 4] = high.words[i];
    }
    // By two words, by one, and by bits: indices that are known when compiling keep all in registers.
    RINGCCL_UNROLL
    for (int i = 0; i < 6; ++i) words[i] = shift & 8 ? words[i + 2] : words[i];
    RINGCCL_UNROLL
    for (int i = 0; i < 5; ++i) words[i] = shift & 4 ? words[i + 1] : words[i];
    Vector v;
    RINGCCL_UNROLL
    for (int i = 0; i < 4; ++i) v.words[i] = funnel_right(words[i], words[i + 1], 8 * (shift & 3));
    return v;
}

// kCount vectors that are `stride` bytes apart. Aligned vectors are all that is read, each with a byte of the source in it.
template <int kCount>
RINGCCL_DEVICE void load_vectors(const uint8_t* at, size_t stride, Vector (&v)[kCount]) {
    const auto shift = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(at) % kVectorBytes);
    if (shift == 0) {
        RINGCCL_UNROLL
        for (int u = 0; u < kCount; ++u) v[u] = load_vector(at + u * stride);
    } else {
        at -= shift;
        Vector high[kCount];
        RINGCCL_UNROLL
        for (int u = 0; u < kCount; ++u) {
            v[u] = load_vector(at + u * stride);
            high[u] = load_vector(at + u * stride + kVectorBytes);
        }
        RINGCCL_UNROLL
        for (int u = 0; u < kCount; ++u) v[u] = shifted(v[u], high[u], shift);
    }
}

// A vector as lanes.
template <class Format>
struct Lanes {
    using Word = typename Format::Word;
    static constexpr int kWords = kVectorBytes / sizeof(Word);
    typename Format::Lane lane[kWords][Format::kLanes];

    RINGCCL_DEVICE void decode(const Vector& v) {
        RINGCCL_UNROLL
        for (int w = 0; w < kWords; ++w) {
            if constexpr (sizeof(Word) == 8) {
                Format::decode(uint64_t{v.words[2 * w + 1]} << 32 | v.words[2 * w], lane[w]);
            } else {
                Format::decode(v.words[w], lane[w]);
            }
        }
    }

    template <class Combine>
    RINGCCL_DEVICE void combine(const Lanes& other) {
        RINGCCL_UNROLL
        for (int w = 0; w < kWords; ++w) {
            RINGCCL_UNROLL
            for (int i = 0; i < Format::kLanes; ++i) lane[w][i] = Combine::combine(lane[w][i], other.lane[w][i]);
        }
    }

    template <class Finish>
    RINGCCL_DEVICE Vector encode(const Finish& finish) {
        Vector v;
        RINGCCL_UNROLL
        for (int w = 0; w < kWords; ++w) {
            RINGCCL_UNROLL
            for (int i = 0; i < Format::kLanes; ++i) lane[w][i] = finish.apply(lane[w][i]);
            const Word word = Format::encode(lane[w]);
            if constexpr (sizeof(Word) == 8) {
                v.words[2 * w] = static_cast<uint32_t>(word);
                v.words[2 * w + 1] = static_cast<uint32_t>(word >> 32);
            } else {
                v.words[w] = word;
            }
        }
        return v;
    }
};

// kCount vectors, the first at byte `at` and the others `stride` bytes apart.
template <int kCount, class Format, class Combine, class Finish>
RINGCCL_DEVICE void reduce_vectors(const ReduceArguments& arguments, size_t at, size_t stride, const Finish& finish) {
    Vector v[kCount];
    Lanes<Format> total[kCount];
    load_vectors(bytes_of(arguments.src[0]) + at, stride, v);
    RINGCCL_UNROLL
    for (int u = 0; u < kCount; ++u) total[u].decode(v[u]);
    for (int j = 1; j < arguments.k; ++j) {
        load_vectors(bytes_of(arguments.src[j]) + at, stride, v);
        RINGCCL_UNROLL
        for (int u = 0; u < kCount; ++u) {
            Lanes<Format> next;
            next.decode(v[u]);
            total[u].template combine<Combine>(next);
        }
    }
    RINGCCL_UNROLL
    for (int u = 0; u < kCount; ++u)
        store_vector(static_cast<uint8_t*>(arguments.dst) + at + u * stride, total[u].encode(finish));
}

// One element, byte by byte: it may lie anywhere. It is computed as the first lane of a word.
template <class Format>
RINGCCL_DEVICE typename Format::Lane load_element(const void* src, size_t index) {
    typename Format::Word word = 0;
    RINGCCL_UNROLL
    for (int i = 0; i < Format::kElementBytes; ++i) {
        word |= static_cast<typename Format::Word>(bytes_of(src)[index * Format::kElementBytes + i]) << (8 * i);
    }
    typename Format::Lane lanes[Format::kLanes];
    Format::decode(word, lanes);
    return lanes[0];
}

template <class Format, class Combine, class Finish>
RINGCCL_DEVICE void reduce_element(const ReduceArguments& arguments, size_t index, const Finish& finish) {
    typename Format::Lane lanes[Format::kLanes] = {load_element<Format>(arguments.src[0], index)};
    for (int j = 1; j < arguments.k; ++j) lanes[0] = Combine::combine(lanes[0], load_element<Format>(arguments.src[j], index));
    lanes[0] = finish.apply(lanes[0]);
    const auto word = Format::encode(lanes);
    RINGCCL_UNROLL
    for (int i = 0; i < Format::kElementBytes; ++i) {
        static_cast<uint8_t*>(arguments.dst)[index * Format::kElementBytes + i] = static_cast<uint8_t>(word >> (8 * i));
    }
}

template <class Format, class Combine, class Finish>
__global__ void __launch_bounds__(kBlockThreads) reduce_kernel(const __grid_constant__ ReduceArguments arguments) {
    const size_t thread = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const size_t threads = size_t{gridDim.x} * blockDim.x;
    const Finish finish(arguments);

    // Registers are few: where lanes are far larger than elements, fewer vectors at a time.
    constexpr bool kGrows = Format::kElementBytes == 1 || sizeof(typename Format::Lane) > sizeof(typename Format::Word);
    constexpr size_t kUnroll = kGrows ? 2 : 4;
    const size_t begin = arguments.head * Format::kElementBytes;
    const size_t stride = threads * kVectorBytes;
    size_t i = thread;
    for (; i + (kUnroll - 1) * threads < arguments.vectors; i += kUnroll * threads) {
        reduce_vectors<kUnroll, Format, Combine>(arguments, begin + i * kVectorBytes, stride, finish);
    }
    for (; i < arguments.vectors; i += threads) {
        reduce_vectors<1, Format, Combine>(arguments, begin + i * kVectorBytes, stride, finish);
    }

    // Head and tail.
    const size_t within = arguments.vectors * (kVectorBytes / Format::kElementBytes);
    for (size_t edge = thread; edge < arguments.count - within; edge += threads) {
        reduce_element<Format, Combine>(arguments, edge < arguments.head ? edge : edge + within, finish);
    }
}

}  // namespace ringccl::cuda
