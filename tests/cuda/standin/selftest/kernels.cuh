// The self test's kernels, for nvcc and for the twin.
#pragma once

#include <cstddef>
#include <cstdint>

// One turn of a loop that waits for a word of the host.
#ifdef __CUDACC__
__device__ inline bool holds(const volatile uint32_t* word, uint32_t value) {
    return *word == value;
}
#else
inline bool holds(const volatile uint32_t* word, uint32_t value) {
    standin_pause();
    return __atomic_load_n(word, __ATOMIC_ACQUIRE) == value;
}
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
    while (!holds(word, value)) continue;
}
