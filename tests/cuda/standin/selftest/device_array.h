// Device memory and pinned memory of a scenario. None is freed: cudaFree would wait for the device, and hide what is looked
// for.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace selftest {

template <typename Value>
Value* device_array(size_t count) {
    void* memory = nullptr;
    return cudaMalloc(&memory, count * sizeof(Value)) == cudaSuccess ? static_cast<Value*>(memory) : nullptr;
}

template <typename Value>
Value* pinned_array(size_t count, Value value = {}) {
    void* memory = nullptr;
    if (cudaMallocHost(&memory, count * sizeof(Value)) != cudaSuccess) return nullptr;
    auto* array = static_cast<Value*>(memory);
    for (size_t i = 0; i < count; i++) array[i] = value;
    return array;
}

inline cudaStream_t new_stream(unsigned flags = cudaStreamNonBlocking) {
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, flags);
    return stream;
}

inline cudaEvent_t new_event(unsigned flags = cudaEventDisableTiming) {
    cudaEvent_t event = nullptr;
    cudaEventCreateWithFlags(&event, flags);
    return event;
}

}  // namespace selftest
