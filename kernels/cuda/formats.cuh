// How elements lie in memory and in which lanes they are computed. A Format takes a word of memory apart into its lanes and
// puts it together again; elements come in words of 32 bits, or 64 where they are as wide.
#pragma once

#include <type_traits>

#include "kernels/cuda/small_float.cuh"

namespace ringccl::cuda {

// A sum of 64-bit integers with room for 2^31 of them.
template <class T>
struct Wide {
    uint64_t low;
    T high;
};

template <class T>
RINGCCL_DEVICE Wide<T> operator+(const Wide<T>& a, const Wide<T>& b) {
    const uint64_t low = a.low + b.low;
    return {low, static_cast<T>(a.high + b.high + (low < a.low))};
}

// Sums and products may run over where only their lower bits are wanted: then lanes are unsigned.
template <class T, class L>
struct Integer {
    using Lane = L;
    using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    static constexpr int kElementBytes = sizeof(T);
    static constexpr int kLanes = sizeof(Word) / sizeof(T);

    static RINGCCL_DEVICE void decode(Word word, Lane (&lanes)[kLanes]) {
        RINGCCL_UNROLL
        for (int i = 0; i < kLanes; ++i) lanes[i] = static_cast<T>(word >> (8 * sizeof(T) * i));
    }
    static RINGCCL_DEVICE Word encode(const Lane (&lanes)[kLanes]) {
        Word word = 0;
        RINGCCL_UNROLL
        for (int i = 0; i < kLanes; ++i)
            word |= static_cast<Word>(static_cast<std::make_unsigned_t<T>>(lanes[i])) << (8 * sizeof(T) * i);
        return word;
    }
};

template <class T>
struct Integer<T, Wide<T>> {
    using Lane = Wide<T>;
    using Word = uint64_t;
    static constexpr int kElementBytes = 8;
    static constexpr int kLanes = 1;

    static RINGCCL_DEVICE void decode(Word word, Lane (&lanes)[1]) {
        lanes[0] = {word, static_cast<T>(std::is_signed_v<T> ? static_cast<int64_t>(word) >> 63 : 0)};
    }
    static RINGCCL_DEVICE Word encode(const Lane (&lanes)[1]) { return lanes[0].low; }
};

// float32 and float64.
template <class T>
struct Float {
    using Lane = T;
    using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    static constexpr int kElementBytes = sizeof(T);
    static constexpr int kLanes = 1;
    static constexpr Word kNan = sizeof(T) == 8 ? Word(0x7ff8000000000000u) : Word(0x7fc00000u);

    static RINGCCL_DEVICE void decode(Word word, Lane (&lanes)[1]) { lanes[0] = bits_as<T>(word); }
    static RINGCCL_DEVICE Word encode(const Lane (&lanes)[1]) { return lanes[0] == lanes[0] ? bits_as<Word>(lanes[0]) : kNan; }
};

// Floats that are computed in float32.
template <class Small>
struct Narrow {
    using Lane = float;
    using Word = uint32_t;
    static constexpr int kElementBytes = Small::kBits / 8;
    static constexpr int kLanes = 32 / Small::kBits;

    static constexpr bool kPairs = RINGCCL_FLOAT8_PAIRS && Small::kBits == 8;

    static RINGCCL_DEVICE void decode(Word word, Lane (&lanes)[kLanes]) {
        if constexpr (kPairs) {
            RINGCCL_UNROLL
            for (int i = 0; i < kLanes; i += 2) {
                const uint32_t halves = Small::widened_pair(word >> (8 * i));
                lanes[i] = Float16::widened(halves);
                lanes[i + 1] = Float16::widened(halves >> 16);
            }
        } else {
            RINGCCL_UNROLL
            for (int i = 0; i < kLanes; ++i) lanes[i] = Small::widened(word >> (Small::kBits * i));
        }
    }

    static RINGCCL_DEVICE Word encode(const Lane (&lanes)[kLanes]) {
        if constexpr (kPairs) {
            bool all_fit = true;  // and none is NaN
            RINGCCL_UNROLL
            for (int i = 0; i < kLanes; ++i) all_fit &= fabsf(lanes[i]) < bits_as<float>(Small::kOverflow);
            if (all_fit) return Small::narrowed_pair(lanes[0], lanes[1]) | Small::narrowed_pair(lanes[2], lanes[3]) << 16;
        }
        Word word = 0;
        RINGCCL_UNROLL
        for (int i = 0; i < kLanes; ++i) word |= Small::narrowed(lanes[i]) << (Small::kBits * i);
        return word;
    }
};

}  // namespace ringccl::cuda
