// The device side of CUDA for the host's compiler, as far as the self test's kernels need it.
#pragma once

#include <vector_types.h>

// CUDA's headers make attributes of them, which only nvcc knows.
#undef __global__
#undef __device__
#undef __host__
#define __global__
#define __device__
#define __host__

inline thread_local uint3 threadIdx, blockIdx;
inline thread_local dim3 blockDim, gridDim;
