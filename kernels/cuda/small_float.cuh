// Floats of 16 bits and fewer to float32 and back, as kernels/cpu/small_float-inl.h does it for vectors. Hardware converts
// where it can: PTX promises IEEE 754 for float16, and for the 8-bit floats all that is not overflow or NaN.
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
        if (size >= Layout::kLarge) return kInfinities && size <= 0x7f800000u ? sign | Layout::kInfinity : Layout::kNan;

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

struct Float8e4m3 : SmallFloat<4, 3, false> {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    static RINGCCL_DEVICE float widened(uint32_t narrow) {
        uint32_t pair;
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<uint16_t>(narrow)));
        return Float16::widened(pair);
    }
    // The instruction saturates, so what must not has to become NaN before. 464 is the tie between 448 and what would follow.
    static RINGCCL_DEVICE uint32_t narrowed(float v) {
        uint16_t pair;
        const float kept = fabsf(v) <= 464.0f ? v : bits_as<float>(0x7fc00000u);
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(kept));
        return pair;
    }
#endif
};

// The upper half of a float16.
struct Float8e5m2 : SmallFloat<5, 2, true> {
#ifdef __CUDA_ARCH__
    static RINGCCL_DEVICE float widened(uint32_t narrow) {
        return Float16::widened(narrow << 8);
    }
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    // Saturates too. 61440 is the tie between the largest number and what would follow.
    static RINGCCL_DEVICE uint32_t narrowed(float v) {
        uint16_t pair;
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(v));
        const uint32_t infinity = bits_as<uint32_t>(v) >> 24 & 0x80u | kInfinity;
        return fabsf(v) < 61440.0f ? pair : v == v ? infinity : kNan;
    }
#endif
};

}  // namespace ringccl::cuda
