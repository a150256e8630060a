// The kernels' table.
#pragma once

#include "kernels/cuda/reduce.cuh"
#include "ringccl/ringccl.h"

namespace ringccl::cuda {

template <class Format, class Combine, template <class> class Finish>
const void* kernel_address() {
    return reinterpret_cast<const void*>(&reduce_kernel<Format, Combine, Finish<typename Format::Lane>>);
}

// Signed and unsigned differ in max, min and avg only. L: what a lane is; A: what it is for a sum that must not run over.
template <class T, class L, class A>
const void* integer_function(Op op) {
    using U = std::make_unsigned_t<T>;
    using Wrapping = Integer<U, std::make_unsigned_t<L>>;
    switch (op) {
        case Op::sum:
            return kernel_address<Wrapping, Sum, AsIs>();
        case Op::prod:
            return kernel_address<Wrapping, Prod, AsIs>();
        case Op::max:
            return kernel_address<Integer<T, L>, Max, AsIs>();
        case Op::min:
            return kernel_address<Integer<T, L>, Min, AsIs>();
        case Op::avg:
            return kernel_address<Integer<T, A>, Sum, Quotient>();
        case Op::premul:
            return kernel_address<Wrapping, Sum, Times>();
        case Op::none:
            break;
    }
    return nullptr;
}

template <class Format>
const void* float_function(Op op) {
    switch (op) {
        case Op::sum:
            return kernel_address<Format, Sum, AsIs>();
        case Op::prod:
            return kernel_address<Format, Prod, AsIs>();
        case Op::max:
            return kernel_address<Format, Max, AsIs>();
        case Op::min:
            return kernel_address<Format, Min, AsIs>();
        case Op::avg:
            return kernel_address<Format, Sum, Over>();
        case Op::premul:
            return kernel_address<Format, Sum, Times>();
        case Op::none:
            break;
    }
    return nullptr;
}

// The address of the kernel, whose one parameter is a ReduceArguments, for cudaLaunchKernel. Never null for a known type and an
// op other than none. One operand is to be copied, unless op is avg or premul.
inline const void* reduce_function(ringDataType_t type, Op op) {
    switch (type) {
        case ringInt8:
            return integer_function<int8_t, int32_t, int32_t>(op);
        case ringUint8:
            return integer_function<uint8_t, uint32_t, uint32_t>(op);
        case ringInt32:
            return integer_function<int32_t, int32_t, int64_t>(op);
        case ringUint32:
            return integer_function<uint32_t, uint32_t, uint64_t>(op);
        case ringInt64:
            return integer_function<int64_t, int64_t, Wide<int64_t>>(op);
        case ringUint64:
            return integer_function<uint64_t, uint64_t, Wide<uint64_t>>(op);
        case ringFloat16:
            return float_function<Narrow<Float16>>(op);
        case ringBfloat16:
            return float_function<Narrow<Bfloat16>>(op);
        case ringFloat8e4m3:
            return float_function<Narrow<Float8e4m3>>(op);
        case ringFloat8e5m2:
            return float_function<Narrow<Float8e5m2>>(op);
        case ringFloat32:
            return float_function<Float<float>>(op);
        case ringFloat64:
            return float_function<Float<double>>(op);
    }
    return nullptr;
}

}  // namespace ringccl::cuda
