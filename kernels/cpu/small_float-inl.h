// Floats of 16 bits and fewer, whose bits become those of a float32 and are made of them. Compiled once per instruction set.

#if defined(RINGCCL_KERNELS_CPU_SMALL_FLOAT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGCCL_KERNELS_CPU_SMALL_FLOAT_INL_H
#undef RINGCCL_KERNELS_CPU_SMALL_FLOAT_INL_H
#else
#define RINGCCL_KERNELS_CPU_SMALL_FLOAT_INL_H
#endif

#include <bit>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ringccl {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::ScalableTag<uint32_t>;
using FloatVector = hn::Vec<Floats>;
using WordVector = hn::Vec<Words>;

// Without infinities there is one NaN of each sign, all ones, and the highest exponent is one more for numbers.
template <int kExponentBits, int kFractionBits, bool kInfinities>
struct SmallFloat {
    static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
    static constexpr int kSpare = 23 - kFractionBits;  // bits of a float32's fraction that go
    static constexpr int kSignShift = 31 - kExponentBits - kFractionBits;
    static constexpr uint32_t kSign = 1u << (kExponentBits + kFractionBits);
    static constexpr uint32_t kInfinity = ((1u << kExponentBits) - 1) << kFractionBits;
    static constexpr uint32_t kNan = kInfinities ? kInfinity | 1u << (kFractionBits - 1) : kSign - 1;

    // From this float32 on, narrow numbers are infinite or NaN ...
    static constexpr float kSpecial =
        std::bit_cast<float>((kInfinities ? kInfinity : kNan) << kSpare) * std::bit_cast<float>((127u + 127u - kBias) << 23);
    // ... and from these bits of one on, rounding leads there and needs care: without infinities just past the tie below.
    static constexpr uint32_t kLarge =
        kInfinities ? std::bit_cast<uint32_t>(kSpecial) : std::bit_cast<uint32_t>(kSpecial) - (1u << (kSpare - 1)) + 1;

    // Exponent and fraction are moved to their places in a float32; one exact multiplication by 2^(127 - bias) then corrects
    // the bias and normalises denormals. Infinity and NaN come out of it as large numbers and are given the highest exponent.
    static HWY_INLINE FloatVector widened(WordVector narrow) {
        const auto sign = hn::ShiftLeft<kSignShift>(hn::And(narrow, hn::Set(Words(), kSign)));
        const auto moved = hn::ShiftLeft<kSpare>(hn::And(narrow, hn::Set(Words(), kSign - 1)));
        const auto factor = hn::Set(Floats(), std::bit_cast<float>((127u + 127u - kBias) << 23));
        const auto scaled = hn::Mul(hn::BitCast(Floats(), moved), factor);
        const auto special = hn::Or(hn::BitCast(Words(), scaled), hn::Set(Words(), 0x7f800000u));
        const auto is_special =
            hn::MaskFromVec(hn::BitCast(Words(), hn::VecFromMask(Floats(), hn::Ge(scaled, hn::Set(Floats(), kSpecial)))));
        return hn::BitCast(Floats(), hn::Or(sign, hn::IfThenElse(is_special, special, hn::BitCast(Words(), scaled))));
    }

    // Nearest even. Normal results: the bias is corrected and the bits that go are rounded: just under one half is added, and
    // one unit more if what stays is odd. Denormal results have one fixed unit, which is that of float32 numbers around
    // `magic`: adding that makes the hardware round there. The only NaN that comes here is the quiet one.
    static HWY_INLINE WordVector narrowed(FloatVector v) {
        const auto bits = hn::BitCast(Words(), v);
        const auto sign = hn::And(bits, hn::Set(Words(), 0x80000000u));
        const auto size = hn::Xor(bits, sign);

        const auto odd = hn::And(hn::ShiftRight<kSpare>(size), hn::Set(Words(), 1u));
        const auto biased = hn::Sub(size, hn::Set(Words(), (127u - kBias) << 23));
        const auto normal = hn::ShiftRight<kSpare>(hn::Add(biased, hn::Add(odd, hn::Set(Words(), (1u << (kSpare - 1)) - 1))));

        const auto magic = hn::Set(Words(), (127u + 24u - kBias - kFractionBits) << 23);
        const auto shifted = hn::Add(hn::BitCast(Floats(), size), hn::BitCast(Floats(), magic));
        const auto denormal = hn::Sub(hn::BitCast(Words(), shifted), magic);

        const auto small_sign = hn::ShiftRight<kSignShift>(sign);
        const auto finite = hn::IfThenElse(hn::Lt(size, hn::Set(Words(), (128u - kBias) << 23)), denormal, normal);
        auto large = hn::Set(Words(), kNan);
        if constexpr (kInfinities) {
            const auto infinity = hn::Or(small_sign, hn::Set(Words(), kInfinity));
            large = hn::IfThenElse(hn::Gt(size, hn::Set(Words(), 0x7f800000u)), large, infinity);
        }
        return hn::IfThenElse(hn::Lt(size, hn::Set(Words(), kLarge)), hn::Or(small_sign, finite), large);
    }
};

}  // namespace HWY_NAMESPACE
}  // namespace ringccl
HWY_AFTER_NAMESPACE();

#endif  // per target
