// The self test's launches.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

void launch_add(const float* a, const float* b, float* sum, size_t count, cudaStream_t stream);
void launch_scale(float* data, size_t count, float factor, cudaStream_t stream);
void launch_scale(int* data, size_t count, int factor, cudaStream_t stream);
void launch_await(const uint32_t* word, uint32_t value, cudaStream_t stream);
