#include "device/cuda/cuda_device.h"
#include "device/cuda_module.h"

namespace ringccl::cuda {
namespace {

// No driver, one that is too old, or no device: said in one sentence.
Result<int> device_count() {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0) return count;
    (void)cudaGetLastError();
    return failure(ringInvalidUsage, "there is no CUDA device to be used: {}",
                   error == cudaSuccess ? "none is visible" : cudaGetErrorString(error));
}

Result<int> current_device() {
    int device = 0;
    RINGCCL_CUDA_TRY(device, cudaGetDevice(&device));
    return device;
}

}  // namespace
}  // namespace ringccl::cuda

extern "C" __attribute__((visibility("default"))) const ringccl::CudaModule ringccl_cuda_module{
    RINGCCL_VERSION, &ringccl::cuda::device_count, &ringccl::cuda::current_device, &ringccl::cuda::CudaDevice::open};
