// Floats of 16 bits and fewer to float32 and back, as kernels/cpu/small_float-inl.h does it for vectors. Hardware converts
// where it can: PTX promises IEEE 754 for float16, and for the 8-bit floats all but overflow, where it saturates.
//
//   widened   of the lower bits of a word; the others do not matter
//   narrowed  to nearest even; every NaN becomes the quiet one
#pragma once

#include "kernels/cuda/portable.cuh"
#include "kernels/small_float.h"

namespace ringccl::cuda {

template <int kExponentBits, int kFractionBits, bool kInfinities>
struct SmallFloat : SmallFloatLayout<kExponentBits, kFractionBits, kInfinities> {
    using Layout = SmallFloatLayout<kExponentBits, kFractionBits, kInfinities>;
    static constexpr int kBits = 1 + kExponentBits + kFractionBits;

    static RINGCCL_DEVICE float widened(uint32_t narrow) {
        const uint32_t sign = (narrow & Layout::kSign) << Layout::kSignShift;
        const float scaled = bits_as<float>((narrow & (Layout::kSign - 1)) << Layout::kSpare) * Layout::kFactor;
        const uint32_t bits = bits_as<uint32_t>(scaled);
        return bits_as<float>(sign | (scaled >= Layout::kSpecial ? bits | 0x7f800000u : bits));
    }

    static RINGCCL_DEVICE uint32_t narrowed(float v) {
        const uint32_t bits = bits_as<uint32_t>(v);
        const uint32_t size = bits & 0x7fffffffu;
        const uint32_t sign = (bits ^ size) >> Layout::kSignShift;
        if (size >= Layout::kOverflow) return kInfinities && size <= 0x7f800000u ? sign | Layout::kInfinity : Layout::kNan;

        constexpr uint32_t kRound = (1u << (Layout::kSpare - 1)) - 1 - ((127u - Layout::kBias) << 23);
        const uint32_t odd = size >> Layout::kSpare & 1;
        const uint32_t normal = (size + kRound + odd) >> Layout::kSpare;
        const float rounded = bits_as<float>(size) + bits_as<float>(Layout::kDenormalUnit);
        const uint32_t denormal = bits_as<uint32_t>(rounded) - Layout::kDenormalUnit;
        return sign | (size < Layout::kLeastNormal ? denormal : normal);
    }
};

struct Float16 : SmallFloat<5, 10, true> {
#ifdef __CUDA_ARCH__
    static RINGCCL_DEVICE float widened(uint32_t narrow) {
        float v;
        asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(static_cast<uint16_t>(narrow)));
        return v;
    }
    static RINGCCL_DEVICE uint32_t narrowed(float v) {
        uint16_t narrow;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow) : "f"(v));
        return v == v ? narrow : kNan;
    }
#endif
};

// The upper half of a float32.
struct Bfloat16 {
    static constexpr int kBits = 16;

    static RINGCCL_DEVICE float widened(uint32_t narrow) { return bits_as<float>(narrow << 16); }

    // Just under one half is added, and one unit more if the upper half is odd. The carry may run up to infinity, rightly.
    static RINGCCL_DEVICE uint32_t narrowed(float v) {
        const uint32_t bits = bits_as<uint32_t>(v);
        return v == v ? (bits + 0x7fffu + (bits >> 16 & 1)) >> 16 : 0x7fc0u;
    }
};

// Where hardware knows the 8-bit floats it converts two at a time: widened_pair to two float16, narrowed_pair from numbers
// that do not overflow.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define RINGCCL_FLOAT8_PAIRS 1
#else
#define RINGCCL_FLOAT8_PAIRS 0
#endif

struct Float8e4m3 : SmallFloat<4, 3, false> {
#if RINGCCL_FLOAT8_PAIRS
    static RINGCCL_DEVICE uint32_t widened_pair(uint32_t pair) {
        uint32_t halves;
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<uint16_t>(pair)));
        return halves;
    }
    static RINGCCL_DEVICE uint32_t narrowed_pair(float first, float second) {
        uint16_t pair;
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
        return pair;
    }
#endif
};

struct Float8e5m2 : SmallFloat<5, 2, true> {
#if RINGCCL_FLOAT8_PAIRS
    static RINGCCL_DEVICE uint32_t widened_pair(uint32_t pair) {
        uint32_t halves;
        asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(static_cast<uint16_t>(pair)));
        return halves;
    }
    static RINGCCL_DEVICE uint32_t narrowed_pair(float first, float second) {
        uint16_t pair;
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
        return pair;
    }
#elif defined(__CUDA_ARCH__)
    // The upper half of a float16.
    static RINGCCL_DEVICE float widened(uint32_t narrow) {
        return Float16::widened(narrow << 8);
    }
#endif
};

}  // namespace ringccl::cuda
