// The integers, modulo 2^bits. Averages are in average_integer.cc.
#include "kernels/cpu/families.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/reduce_integer.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "kernels/cpu/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringccl {
namespace HWY_NAMESPACE {

template <class D, class V>
HWY_INLINE V product(D d, V a, V b) {
    if constexpr (sizeof(hn::TFromD<D>) == 1) {
        // No instruction multiplies bytes: the even ones are the lower bytes of 16-bit products, the odd ones the upper bytes
        // of products with one factor left in place.
        const hn::Repartition<uint16_t, D> wide;
        const auto a16 = hn::BitCast(wide, a);
        const auto b16 = hn::BitCast(wide, b);
        const auto even = hn::And(hn::Mul(a16, b16), hn::Set(wide, uint16_t{0x00ff}));
        const auto odd = hn::Mul(hn::ShiftRight<8>(a16), hn::And(b16, hn::Set(wide, uint16_t{0xff00})));
        return hn::BitCast(d, hn::Or(even, odd));
    } else {
        return hn::Mul(a, b);
    }
}

struct IntegerProd {
    template <class D, class V>
    static HWY_INLINE V combine(D d, V a, V b) {
        return product(d, a, b);
    }
};
struct IntegerMax {
    template <class D, class V>
    static HWY_INLINE V combine(D, V a, V b) {
        return hn::Max(a, b);
    }
};
struct IntegerMin {
    template <class D, class V>
    static HWY_INLINE V combine(D, V a, V b) {
        return hn::Min(a, b);
    }
};

struct AsIs {
    template <class D, class V>
    HWY_INLINE V apply(D, V v) const {
        return v;
    }
};

template <class T>
struct IntegerTimes {
    T factor;

    template <class D, class V>
    HWY_INLINE V apply(D d, V v) const {
        return product(d, v, hn::Set(d, factor));
    }
};

template <class T>
void premultiply_integer(void* dst, const void* const* src, int, size_t count, const Scale& scale) {
    reduce_any<Plain<T>, Sum>(dst, src, 1, count, IntegerTimes<T>{static_cast<T>(scale.scalar_bits)});
}

// Signed and unsigned differ in max and min only.
template <class T>
ReduceKernel kernel_of(Op op) {
    using U = hwy::MakeUnsigned<T>;
    switch (op) {
        case Op::sum:
            return &reduce<Plain<U>, Sum, AsIs>;
        case Op::prod:
            return &reduce<Plain<U>, IntegerProd, AsIs>;
        case Op::max:
            return &reduce<Plain<T>, IntegerMax, AsIs>;
        case Op::min:
            return &reduce<Plain<T>, IntegerMin, AsIs>;
        case Op::premul:
            return &premultiply_integer<U>;
        case Op::avg:
        case Op::none:
            break;
    }
    return nullptr;
}

ReduceKernel IntegerKernel(ringDataType_t type, Op op) {
    switch (type) {
        case ringInt8:
            return kernel_of<int8_t>(op);
        case ringUint8:
            return kernel_of<uint8_t>(op);
        case ringInt32:
            return kernel_of<int32_t>(op);
        case ringUint32:
            return kernel_of<uint32_t>(op);
        case ringInt64:
            return kernel_of<int64_t>(op);
        case ringUint64:
            return kernel_of<uint64_t>(op);
        default:
            return nullptr;
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace ringccl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ringccl {

HWY_EXPORT(IntegerKernel);

ReduceKernel integer_kernel(ringDataType_t type, Op op) {
    return HWY_DYNAMIC_DISPATCH(IntegerKernel)(type, op);
}

}  // namespace ringccl
#endif
