// Calls of the CUDA runtime: on which device, and in whose words they fail.
#pragma once

#include <cuda_runtime_api.h>

#include "base/status.h"

namespace ringccl::cuda {

// Makes a device the thread's current one for as long as an object lives: the caller's own choice stays.
class OnDevice {
public:
    explicit OnDevice(int device) {
        if (cudaGetDevice(&before_) != cudaSuccess) before_ = device;
        if (before_ != device) cudaSetDevice(device);
        changed_ = before_ != device;
    }
    ~OnDevice() {
        if (changed_) cudaSetDevice(before_);
    }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

private:
    int before_ = 0;
    bool changed_ = false;
};

// `call` as it stands in the code. The runtime keeps the last error for cudaGetLastError; what is reported here is taken away,
// so that the user's own checks do not find it.
inline Status checked(cudaError_t error, const char* call, int device) {
    if (error == cudaSuccess) return {};
    (void)cudaGetLastError();
    return failure(ringUnhandledCudaError, "CUDA device {}: {}: {} ({})", device, call, cudaGetErrorString(error),
                   cudaGetErrorName(error));
}

}  // namespace ringccl::cuda

// Leaves the enclosing function with the failure of a CUDA call, if it failed.
#define RINGCCL_CUDA_TRY(device, call) RINGCCL_TRY(::ringccl::cuda::checked(call, #call, device))
