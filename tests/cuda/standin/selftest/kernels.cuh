// The self test's kernels, for nvcc and for the twin.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define SELFTEST_PAUSE()
#else
#define SELFTEST_PAUSE() standin_pause()
#endif

template <typename Value>
struct View {
    Value* data;
    size_t count;
};

__global__ void add(const float* a, const float* b, float* sum, size_t count) {
    size_t stride = size_t{gridDim.x} * blockDim.x;
    for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) sum[i] = a[i] + b[i];
}

template <typename Value>
__global__ void scale(View<Value> view, Value factor) {
    size_t stride = size_t{gridDim.x} * blockDim.x;
    for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < view.count; i += stride) view.data[i] *= factor;
}

__global__ void await(const volatile uint32_t* word, uint32_t value) {
    while (*word != value) SELFTEST_PAUSE();
}
