// The device side of CUDA for the host's compiler, as far as kernels need it whose threads need nothing of each other.
#pragma once

#include <vector_types.h>

// CUDA's headers make attributes of them, which only nvcc knows.
#undef __global__
#undef __device__
#undef __host__
#undef __grid_constant__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __launch_bounds__(threads)

inline thread_local uint3 threadIdx, blockIdx;
inline thread_local dim3 blockDim, gridDim;
