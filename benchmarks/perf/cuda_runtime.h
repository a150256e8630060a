// The CUDA runtime that the library's module for CUDA devices has brought in. The tools are not linked with one and need none
// of its headers, so that one binary runs, and is built, where there is no CUDA as well.
#pragma once

#include <cstddef>
#include <string>

namespace ringccl::perf {

class CudaRuntime {
public:
    using Error = int;  // cudaError_t
    static constexpr unsigned kNonBlocking = 1;
    static constexpr int kAnyDirection = 4;

    // Throws std::runtime_error, with the library's words, where there is no module, no runtime or no device. The first call
    // must come after the last fork.
    static const CudaRuntime& of_process();

    int devices() const { return devices_; }
    std::string device_name(int device) const;

    // Throws std::runtime_error if the call gave an error.
    void need(Error error, const char* call) const;

    // As in cuda_runtime_api.h, with cudaStream_t as void*. Their types have stayed the same since CUDA 5.
    Error (*set_device)(int device) = nullptr;
    Error (*stream_create)(void** stream, unsigned flags) = nullptr;
    Error (*stream_synchronize)(void* stream) = nullptr;
    Error (*allocate)(void** memory, size_t bytes) = nullptr;
    Error (*memcpy_async)(void* to, const void* from, size_t bytes, int direction, void* stream) = nullptr;
    Error (*get_device_properties)(void* properties, int device) = nullptr;
    const char* (*get_error_string)(Error error) = nullptr;

private:
    CudaRuntime();

    int devices_ = 0;
};

}  // namespace ringccl::perf
