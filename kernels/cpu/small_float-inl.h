// Floats of 16 bits and fewer, whose bits become those of a float32 and are made of them. Compiled once per instruction set.

#if defined(RINGCCL_KERNELS_CPU_SMALL_FLOAT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGCCL_KERNELS_CPU_SMALL_FLOAT_INL_H
#undef RINGCCL_KERNELS_CPU_SMALL_FLOAT_INL_H
#else
#define RINGCCL_KERNELS_CPU_SMALL_FLOAT_INL_H
#endif

#include "hwy/highway.h"
#include "kernels/small_float.h"

HWY_BEFORE_NAMESPACE();
namespace ringccl {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::ScalableTag<uint32_t>;
using FloatVector = hn::Vec<Floats>;
using WordVector = hn::Vec<Words>;

template <int kExponentBits, int kFractionBits, bool kInfinities>
struct SmallFloat {
    using Layout = SmallFloatLayout<kExponentBits, kFractionBits, kInfinities>;

    // Exponent and fraction are moved to their places in a float32; one exact multiplication then corrects the bias and
    // normalises denormals. Infinity and NaN come out of it as large numbers and are given the highest exponent.
    static HWY_INLINE FloatVector widened(WordVector narrow) {
        const auto sign = hn::ShiftLeft<Layout::kSignShift>(hn::And(narrow, hn::Set(Words(), Layout::kSign)));
        const auto moved = hn::ShiftLeft<Layout::kSpare>(hn::And(narrow, hn::Set(Words(), Layout::kSign - 1)));
        const auto scaled = hn::Mul(hn::BitCast(Floats(), moved), hn::Set(Floats(), Layout::kFactor));
        const auto special = hn::Or(hn::BitCast(Words(), scaled), hn::Set(Words(), 0x7f800000u));
        const auto is_special = hn::MaskFromVec(
            hn::BitCast(Words(), hn::VecFromMask(Floats(), hn::Ge(scaled, hn::Set(Floats(), Layout::kSpecial)))));
        return hn::BitCast(Floats(), hn::Or(sign, hn::IfThenElse(is_special, special, hn::BitCast(Words(), scaled))));
    }

    // Nearest even. Normal results: the bias is corrected and the bits that go are rounded: just under one half is added, and
    // one unit more if what stays is odd. The only NaN that comes here is the quiet one.
    static HWY_INLINE WordVector narrowed(FloatVector v) {
        const auto bits = hn::BitCast(Words(), v);
        const auto sign = hn::And(bits, hn::Set(Words(), 0x80000000u));
        const auto size = hn::Xor(bits, sign);

        constexpr uint32_t kRound = (1u << (Layout::kSpare - 1)) - 1;
        const auto odd = hn::And(hn::ShiftRight<Layout::kSpare>(size), hn::Set(Words(), 1u));
        const auto biased = hn::Sub(size, hn::Set(Words(), (127u - Layout::kBias) << 23));
        const auto normal = hn::ShiftRight<Layout::kSpare>(hn::Add(biased, hn::Add(odd, hn::Set(Words(), kRound))));

        const auto unit = hn::Set(Words(), Layout::kDenormalUnit);
        const auto rounded = hn::Add(hn::BitCast(Floats(), size), hn::BitCast(Floats(), unit));
        const auto denormal = hn::Sub(hn::BitCast(Words(), rounded), unit);

        const auto narrow_sign = hn::ShiftRight<Layout::kSignShift>(sign);
        const auto finite = hn::IfThenElse(hn::Lt(size, hn::Set(Words(), Layout::kLeastNormal)), denormal, normal);
        auto large = hn::Set(Words(), Layout::kNan);
        if constexpr (kInfinities) {
            const auto infinity = hn::Or(narrow_sign, hn::Set(Words(), Layout::kInfinity));
            large = hn::IfThenElse(hn::Gt(size, hn::Set(Words(), 0x7f800000u)), large, infinity);
        }
        return hn::IfThenElse(hn::Lt(size, hn::Set(Words(), Layout::kOverflow)), hn::Or(narrow_sign, finite), large);
    }
};

}  // namespace HWY_NAMESPACE
}  // namespace ringccl
HWY_AFTER_NAMESPACE();

#endif  // per target
