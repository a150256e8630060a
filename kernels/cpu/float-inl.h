// The arithmetic of float lanes, for every format whose lanes are float or double. Compiled once per instruction set.

#if defined(RINGCCL_KERNELS_CPU_FLOAT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGCCL_KERNELS_CPU_FLOAT_INL_H
#undef RINGCCL_KERNELS_CPU_FLOAT_INL_H
#else
#define RINGCCL_KERNELS_CPU_FLOAT_INL_H
#endif

#include "kernels/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringccl {
namespace HWY_NAMESPACE {

// The one NaN that leaves the kernels: quiet, positive, no payload. Which of two NaN operands an addition hands on differs
// between processors and is not fixed by the language; ranks must not see that.
template <class D>
HWY_INLINE hn::Vec<D> quiet_nan(D d) {
    const hn::RebindToUnsigned<D> bits;
    if constexpr (sizeof(hn::TFromD<D>) == 4) {
        return hn::BitCast(d, hn::Set(bits, uint32_t{0x7fc00000u}));
    } else {
        return hn::BitCast(d, hn::Set(bits, uint64_t{0x7ff8000000000000u}));
    }
}

template <class D, class V>
HWY_INLINE V with_quiet_nan(D d, V v) {
    return hn::IfThenElse(hn::IsNaN(v), quiet_nan(d), v);
}

struct FloatProd {
    template <class D, class V>
    static HWY_INLINE V combine(D, V a, V b) {
        return hn::Mul(a, b);
    }
};

// Max and min must not depend on the order of the operands. The hardware's do in two cases: for a NaN, and for zeros of
// different sign, where x86 hands on the second operand. Asking both ways round and joining the bits puts +0 above -0 and
// changes nothing else.
struct FloatMax {
    template <class D, class V>
    static HWY_INLINE V combine(D d, V a, V b) {
        const auto unordered = hn::Or(hn::IsNaN(a), hn::IsNaN(b));
        return hn::IfThenElse(unordered, quiet_nan(d), hn::And(hn::Max(a, b), hn::Max(b, a)));
    }
};
struct FloatMin {
    template <class D, class V>
    static HWY_INLINE V combine(D d, V a, V b) {
        const auto unordered = hn::Or(hn::IsNaN(a), hn::IsNaN(b));
        return hn::IfThenElse(unordered, quiet_nan(d), hn::Or(hn::Min(a, b), hn::Min(b, a)));
    }
};

// ---- finishes ----

struct Quiet {
    template <class D, class V>
    HWY_INLINE V apply(D d, V v) const {
        return with_quiet_nan(d, v);
    }
};

template <class Lane>
struct Times {
    Lane factor;

    template <class D, class V>
    HWY_INLINE V apply(D d, V v) const {
        return with_quiet_nan(d, hn::Mul(v, hn::Set(d, factor)));
    }
};

template <class Lane>
struct Over {
    Lane divisor;

    template <class D, class V>
    HWY_INLINE V apply(D d, V v) const {
        return with_quiet_nan(d, hn::Div(v, hn::Set(d, divisor)));
    }
};

// ---- kernels ----

template <class Format>
void average(void* dst, const void* const* src, int k, size_t count, const Scale& scale) {
    using Lane = typename Format::Lane;
    const auto divisor = static_cast<Lane>(scale.divisor);
    // For a power of two the reciprocal is exact, so the product is the quotient to the bit, and several times as fast.
    if ((scale.divisor & (scale.divisor - 1)) == 0) {
        reduce_any<Format, Sum>(dst, src, k, count, Times<Lane>{Lane{1} / divisor});
    } else {
        reduce_any<Format, Sum>(dst, src, k, count, Over<Lane>{divisor});
    }
}

template <class Format>
void premultiply(void* dst, const void* const* src, int, size_t count, const Scale& scale) {
    using Lane = typename Format::Lane;
    reduce_any<Format, Sum>(dst, src, 1, count, Times<Lane>{static_cast<Lane>(scale.scalar)});
}

template <class Format>
ReduceKernel kernel_of(Op op) {
    switch (op) {
        case Op::sum:
            return &reduce<Format, Sum, Quiet>;
        case Op::prod:
            return &reduce<Format, FloatProd, Quiet>;
        case Op::max:
            return &reduce<Format, FloatMax, Quiet>;
        case Op::min:
            return &reduce<Format, FloatMin, Quiet>;
        case Op::avg:
            return &average<Format>;
        case Op::premul:
            return &premultiply<Format>;
        case Op::none:
            break;
    }
    return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace ringccl
HWY_AFTER_NAMESPACE();

#endif  // per target
