// float8e4m3 and float8e5m2: widened to float32 as they are loaded, combined there over all sources, rounded once as they are
// stored.
#include "kernels/cpu/families.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/reduce_float8.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "kernels/cpu/float-inl.h"
#include "kernels/cpu/small_float-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringccl {
namespace HWY_NAMESPACE {

// Half a vector of bytes holds as many elements as two vectors have floats. Each byte becomes 16 bits, and as in reduce_half.cc
// those at even places become a and those at odd places b.
template <class Small>
struct Float8 {
    using Lane = float;
    using D = Floats;
    using V = FloatVector;
    using HalfBytes = hn::Half<Bytes>;
    static constexpr size_t kElementBytes = 1;
    static size_t block_bytes() { return hn::Lanes(HalfBytes()); }

    template <class Access>
    static HWY_INLINE void load(Access access, const uint8_t* at, V& a, V& b) {
        const hn::Repartition<uint16_t, Bytes> spread;
        const auto pair = hn::BitCast(Words(), hn::PromoteTo(spread, access.load(at, 0, HalfBytes())));
        a = Small::widened(pair);  // which looks at the lower bits only
        b = Small::widened(hn::ShiftRight<16>(pair));
    }

    template <class Access>
    static HWY_INLINE void store(Access access, V a, V b, uint8_t* at) {
        const hn::Repartition<int16_t, Bytes> spread;
        const auto pair = hn::Or(Small::narrowed(a), hn::ShiftLeft<16>(Small::narrowed(b)));
        access.store(hn::DemoteTo(HalfBytes(), hn::BitCast(spread, pair)), at, 0, HalfBytes());
    }
};

ReduceKernel Float8Kernel(ringDataType_t type, Op op) {
    return type == ringFloat8e4m3 ? kernel_of<Float8<SmallFloat<4, 3, false>>>(op)
                                  : kernel_of<Float8<SmallFloat<5, 2, true>>>(op);
}

}  // namespace HWY_NAMESPACE
}  // namespace ringccl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ringccl {

HWY_EXPORT(Float8Kernel);

ReduceKernel float8_kernel(ringDataType_t type, Op op) {
    return HWY_DYNAMIC_DISPATCH(Float8Kernel)(type, op);
}

}  // namespace ringccl
#endif
