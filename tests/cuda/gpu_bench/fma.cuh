// Computation that touches no memory: what fills a GPU's arithmetic and leaves its memory to others.
#pragma once

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif
#include <cmath>

namespace ringccl::gpu_bench {

__global__ void fma_kernel(float* never, int rounds) {
    const auto x = static_cast<float>(threadIdx.x);
    float a = x, b = x + 1, c = x + 2, d = x + 3;  // four, so that one does not wait for itself
    for (int i = 0; i < rounds; ++i) {
        a = fmaf(a, 0.5f, 1.0f);
        b = fmaf(b, 0.5f, 1.0f);
        c = fmaf(c, 0.5f, 1.0f);
        d = fmaf(d, 0.5f, 1.0f);
    }
    if (a + b + c + d < 0) *never = a;  // the compiler does not see that it is not
}

}  // namespace ringccl::gpu_bench
