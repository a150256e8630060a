#include "kernels.cuh"
#include "kernels.h"

namespace {
constexpr int blocks = 4, threads = 128;
}

void launch_add(const float* a, const float* b, float* sum, size_t count, cudaStream_t stream) {
    add<<<blocks, threads, 0, stream>>>(a, b, sum, count);
}

void launch_scale(float* data, size_t count, float factor, cudaStream_t stream) {
    scale<<<blocks, threads, 0, stream>>>(View<float>{data, count}, factor);
}

void launch_scale(int* data, size_t count, int factor, cudaStream_t stream) {
    scale<<<blocks, threads, 0, stream>>>(View<int>{data, count}, factor);
}

void launch_await(const uint32_t* word, uint32_t value, cudaStream_t stream) {
    await<<<1, 1, 0, stream>>>(word, value);
}
