// float16 and bfloat16: widened to float32 as they are loaded, combined there over all sources, rounded once as they are
// stored.
#include "kernels/cpu/families.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/reduce_half.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "kernels/cpu/float-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringccl {
namespace HWY_NAMESPACE {

using Floats = hn::ScalableTag<float>;
using Words = hn::ScalableTag<uint32_t>;
using FloatVector = hn::Vec<Floats>;
using WordVector = hn::Vec<Words>;

// One vector of bytes holds twice as many 16-bit elements as a vector has floats. Seen as 32-bit words, the elements at even
// places become a and those at odd places b, by shifts alone; which place a lane stands for does not matter to the arithmetic.
struct HalfFormat {
    using Lane = float;
    using D = Floats;
    using V = FloatVector;
    static constexpr size_t kElementBytes = 2;
    static size_t block_bytes() { return hn::Lanes(Bytes()); }
};

// A bfloat16 is the upper half of a float32.
struct Bfloat16 : HalfFormat {
    template <class Access>
    static HWY_INLINE void load(Access access, const uint8_t* at, V& a, V& b) {
        const auto pair = hn::BitCast(Words(), access.load(at, 0));
        a = hn::BitCast(Floats(), hn::ShiftLeft<16>(pair));
        b = hn::BitCast(Floats(), hn::And(pair, hn::Set(Words(), 0xffff0000u)));
    }

    template <class Access>
    static HWY_INLINE void store(Access access, V a, V b, uint8_t* at) {
        const auto low = hn::ShiftRight<16>(rounded(a));
        const auto high = hn::And(rounded(b), hn::Set(Words(), 0xffff0000u));
        access.store(hn::BitCast(Bytes(), hn::Or(low, high)), at, 0);
    }

    // Nearest even in the upper half: just under one half is added, and one unit more if the upper half is odd. The carry may
    // run into the exponent, up to infinity, which is right. The only NaN here is the quiet one, which survives it.
    static HWY_INLINE WordVector rounded(V v) {
        const auto bits = hn::BitCast(Words(), v);
        const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(Words(), 1u));
        return hn::Add(bits, hn::Add(odd, hn::Set(Words(), 0x7fffu)));
    }
};

// AVX2 implies F16C here, and AArch64 always converts in hardware. Elsewhere Highway's own conversion loses infinities.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || \
    (HWY_ARCH_ARM_A64 && HWY_TARGET == HWY_NEON)

struct Float16 : HalfFormat {
    using HalfBytes = hn::Half<Bytes>;
    using Halves = hn::Rebind<hwy::float16_t, Floats>;

    template <class Access>
    static HWY_INLINE void load(Access access, const uint8_t* at, V& a, V& b) {
        const auto both = access.load(at, 0);
        a = hn::PromoteTo(Floats(), hn::BitCast(Halves(), hn::LowerHalf(HalfBytes(), both)));
        b = hn::PromoteTo(Floats(), hn::BitCast(Halves(), hn::UpperHalf(HalfBytes(), both)));
    }

    template <class Access>
    static HWY_INLINE void store(Access access, V a, V b, uint8_t* at) {
        const auto low = hn::BitCast(HalfBytes(), hn::DemoteTo(Halves(), a));
        const auto high = hn::BitCast(HalfBytes(), hn::DemoteTo(Halves(), b));
        access.store(hn::Combine(Bytes(), high, low), at, 0);
    }
};

#else

struct Float16 : HalfFormat {
    template <class Access>
    static HWY_INLINE void load(Access access, const uint8_t* at, V& a, V& b) {
        const auto pair = hn::BitCast(Words(), access.load(at, 0));
        a = widened(hn::And(pair, hn::Set(Words(), 0xffffu)));
        b = widened(hn::ShiftRight<16>(pair));
    }

    template <class Access>
    static HWY_INLINE void store(Access access, V a, V b, uint8_t* at) {
        access.store(hn::BitCast(Bytes(), hn::Or(narrowed(a), hn::ShiftLeft<16>(narrowed(b)))), at, 0);
    }

    // Exponent and fraction are moved to their places in a float32; one exact multiplication by 2^(127-15) then corrects the
    // bias and normalises denormals. Infinity and NaN come out of it as 2^16 or more and are given the highest exponent.
    static HWY_INLINE V widened(WordVector half) {
        const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(Words(), 0x8000u)));
        const auto moved = hn::ShiftLeft<13>(hn::And(half, hn::Set(Words(), 0x7fffu)));
        const auto scaled = hn::Mul(hn::BitCast(Floats(), moved), hn::Set(Floats(), 0x1p112f));
        const auto special = hn::Or(hn::BitCast(Words(), scaled), hn::Set(Words(), 0x7f800000u));
        const auto is_special =
            hn::MaskFromVec(hn::BitCast(Words(), hn::VecFromMask(Floats(), hn::Ge(scaled, hn::Set(Floats(), 0x1p16f)))));
        return hn::BitCast(Floats(), hn::Or(sign, hn::IfThenElse(is_special, special, hn::BitCast(Words(), scaled))));
    }

    // Nearest even. Normal results: the bias is corrected and the 13 bits that go are rounded as in Bfloat16. Denormal results
    // have one fixed unit, 2^-24, which is that of a float32 around 0.5: adding 0.5 makes the hardware round there.
    static HWY_INLINE WordVector narrowed(V v) {
        const auto bits = hn::BitCast(Words(), v);
        const auto sign = hn::And(bits, hn::Set(Words(), 0x80000000u));
        const auto size = hn::Xor(bits, sign);

        const auto odd = hn::And(hn::ShiftRight<13>(size), hn::Set(Words(), 1u));
        const auto biased = hn::Sub(size, hn::Set(Words(), (127u - 15u) << 23));
        const auto normal = hn::ShiftRight<13>(hn::Add(biased, hn::Add(odd, hn::Set(Words(), 0xfffu))));

        const auto half = hn::Set(Floats(), 0.5f);
        const auto denormal =
            hn::Sub(hn::BitCast(Words(), hn::Add(hn::BitCast(Floats(), size), half)), hn::BitCast(Words(), half));

        // 2^16 and more, infinity included, is infinity; 65520 .. 2^16 gets there by the carry. NaN is the quiet one.
        const auto infinity = hn::Set(Words(), 0x7c00u);
        const auto large = hn::IfThenElse(hn::Gt(size, hn::Set(Words(), 0x7f800000u)), hn::Set(Words(), 0x7e00u), infinity);
        const auto finite = hn::IfThenElse(hn::Lt(size, hn::Set(Words(), (127u - 14u) << 23)), denormal, normal);
        const auto result = hn::IfThenElse(hn::Lt(size, hn::Set(Words(), (127u + 16u) << 23)), finite, large);
        return hn::Or(result, hn::ShiftRight<16>(sign));
    }
};

#endif

ReduceKernel HalfKernel(ringDataType_t type, Op op) {
    return type == ringFloat16 ? kernel_of<Float16>(op) : kernel_of<Bfloat16>(op);
}

}  // namespace HWY_NAMESPACE
}  // namespace ringccl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ringccl {

HWY_EXPORT(HalfKernel);

ReduceKernel half_kernel(ringDataType_t type, Op op) {
    return HWY_DYNAMIC_DISPATCH(HalfKernel)(type, op);
}

}  // namespace ringccl
#endif
