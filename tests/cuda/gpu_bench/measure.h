// What all parts of gpu_bench measure with.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ringccl/ringccl.h"

namespace ringccl::gpu_bench {

// How much is measured. Results of the quick way mean nothing; it shows on the stand-in that all of it runs.
struct Effort {
    size_t small = size_t{16} << 20, large = size_t{256} << 20;  // bytes of an operand of a reduction
    std::vector<size_t> messages = {size_t{1} << 10, size_t{1} << 20, size_t{64} << 20, size_t{256} << 20};  // of allReduces
    int rounds = 7;               // of which the median counts
    double round_seconds = 0.01;  // about, of each
    static Effort quick() { return {size_t{16} << 10, size_t{64} << 10, {1 << 10, 1 << 16}, 1, 0}; }
};

inline void check(cudaError_t error, const char* call) {
    if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}
inline void check(ringResult_t result, const char* call) {
    if (result != ringSuccess) throw std::runtime_error(std::string(call) + ": " + ringGetLastError(nullptr));
}
#define GPU_CHECK(call) ::ringccl::gpu_bench::check(call, #call)

inline double median(std::vector<double> values) {
    std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
    return values[values.size() / 2];
}

// Device memory, filled with numbers that are neither 0 nor huge in any type.
inline std::byte* allocate(size_t bytes) {
    void* memory = nullptr;
    GPU_CHECK(cudaMalloc(&memory, bytes));
    GPU_CHECK(cudaMemset(memory, 0x3c, bytes));
    GPU_CHECK(cudaDeviceSynchronize());
    return static_cast<std::byte*>(memory);
}

// Seconds of the device for what `enqueue` puts into the stream.
double stream_seconds(cudaStream_t stream, const std::function<void()>& enqueue);

// Median seconds of one call of enqueue(i), i counting up, when many follow each other in the stream.
double median_seconds(cudaStream_t stream, const Effort& effort, const std::function<void(int)>& enqueue);

}  // namespace ringccl::gpu_bench
