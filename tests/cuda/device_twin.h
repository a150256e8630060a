// CUDA's words for g++: with them a .cuh of kernels/cuda is plain C++, and its threads run one after the other. That is right
// for kernels whose threads need nothing of each other, and only for those. Include before any .cuh.
#pragma once

#define __global__
#define __device__
#define __grid_constant__
#define __launch_bounds__(threads)

namespace ringccl::cuda {

struct Place {
    unsigned x = 0, y = 0, z = 0;
};
inline thread_local Place threadIdx, blockIdx, blockDim, gridDim;

// <<<blocks, threads>>> of the kernel at that address, which takes one Arguments.
template <class Arguments>
void run(const void* kernel, unsigned blocks, unsigned threads, const Arguments& arguments) {
    const auto body = reinterpret_cast<void (*)(Arguments)>(const_cast<void*>(kernel));
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    for (blockIdx = {}; blockIdx.x < blocks; ++blockIdx.x) {
        for (threadIdx = {}; threadIdx.x < threads; ++threadIdx.x) body(arguments);
    }
}

}  // namespace ringccl::cuda
