// The kernels by family of types: each family is one source file, compiled once per instruction set.
#pragma once

#include "kernels/cpu/kernels.h"

namespace ringccl {

ReduceKernel integer_kernel(ringDataType_t type, Op op);  // all ops but avg
ReduceKernel average_kernel(ringDataType_t type);         // avg of integers
ReduceKernel float_kernel(ringDataType_t type, Op op);    // float32, float64
ReduceKernel half_kernel(ringDataType_t type, Op op);     // float16, bfloat16
ReduceKernel float8_kernel(ringDataType_t type, Op op);   // float8e4m3, float8e5m2

}  // namespace ringccl
