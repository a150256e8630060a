#pragma once

#include <cuda_runtime_api.h>

namespace ringccl::gpu_bench {

// Many waves of blocks that fill the device, as large kernels of a training step do: others get in between two waves.
// The time of each block grows with `rounds`.
cudaError_t launch_fma(int blocks, int rounds, cudaStream_t stream);

}  // namespace ringccl::gpu_bench
