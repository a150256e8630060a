// The table of kernels.
#include "kernels/cpu/kernels.h"

#include "kernels/cpu/families.h"

namespace ringccl {

ReduceKernel reduce_kernel(ringDataType_t type, Op op) {
    switch (type) {
        case ringInt8:
        case ringUint8:
        case ringInt32:
        case ringUint32:
        case ringInt64:
        case ringUint64:
            return op == Op::avg ? average_kernel(type) : integer_kernel(type, op);
        case ringFloat32:
        case ringFloat64:
            return float_kernel(type, op);
        case ringFloat16:
        case ringBfloat16:
            return half_kernel(type, op);
        case ringFloat8e4m3:
        case ringFloat8e5m2:
            return float8_kernel(type, op);
    }
    return nullptr;
}

}  // namespace ringccl
