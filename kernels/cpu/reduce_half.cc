// float16 and bfloat16: widened to float32 as they are loaded, combined there over all sources, rounded once as they are
// stored.
#include "kernels/cpu/families.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/reduce_half.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "kernels/cpu/float-inl.h"
#include "kernels/cpu/small_float-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringccl {
namespace HWY_NAMESPACE {

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
    using Small = SmallFloat<5, 10, true>;

    template <class Access>
    static HWY_INLINE void load(Access access, const uint8_t* at, V& a, V& b) {
        const auto pair = hn::BitCast(Words(), access.load(at, 0));
        a = Small::widened(pair);  // which looks at the lower bits only
        b = Small::widened(hn::ShiftRight<16>(pair));
    }

    template <class Access>
    static HWY_INLINE void store(Access access, V a, V b, uint8_t* at) {
        const auto pair = hn::Or(Small::narrowed(a), hn::ShiftLeft<16>(Small::narrowed(b)));
        access.store(hn::BitCast(Bytes(), pair), at, 0);
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
