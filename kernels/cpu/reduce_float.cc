// float32 and float64.
#include "kernels/cpu/families.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/reduce_float.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "kernels/cpu/float-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ringccl {
namespace HWY_NAMESPACE {

ReduceKernel FloatKernel(ringDataType_t type, Op op) {
    return type == ringFloat32 ? kernel_of<Plain<float>>(op) : kernel_of<Plain<double>>(op);
}

}  // namespace HWY_NAMESPACE
}  // namespace ringccl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ringccl {

HWY_EXPORT(FloatKernel);

ReduceKernel float_kernel(ringDataType_t type, Op op) {
    return HWY_DYNAMIC_DISPATCH(FloatKernel)(type, op);
}

}  // namespace ringccl
#endif
