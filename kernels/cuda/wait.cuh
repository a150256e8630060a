// Holds a stream until a word of host memory has come to a value: for drivers whose streams cannot do that themselves. One thread,
// which sleeps between its looks; blocks of other streams run beside it.
#pragma once

#include "kernels/cuda/portable.cuh"

namespace ringccl::cuda {

__global__ void wait_kernel(const uint32_t* word, uint32_t value) {
    while (static_cast<int32_t>(load_acquire(word) - value) < 0) pause();
}

}  // namespace ringccl::cuda
