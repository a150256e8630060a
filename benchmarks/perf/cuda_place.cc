#include "perf/cuda_place.h"

#include <fmt/format.h>

#include <stdexcept>

namespace ringccl::perf {

CudaPlace::CudaPlace(int rank, int device)
    : runtime_(CudaRuntime::of_process()), device_(device < 0 ? rank % runtime_.devices() : device) {
    if (device_ >= runtime_.devices()) {
        throw std::runtime_error(
            fmt::format("--device-index {} is out of range: the number of CUDA devices is {}", device_, runtime_.devices()));
    }
    runtime_.need(runtime_.set_device(device_), "cudaSetDevice");
    runtime_.need(runtime_.stream_create(&stream_, CudaRuntime::kNonBlocking), "cudaStreamCreateWithFlags");
}

void CudaPlace::configure(ringConfig_t& config) const {
    config.deviceKind = ringDeviceCuda;
    config.deviceIndex = device_;
}

std::string CudaPlace::name() const {
    return fmt::format("CUDA device {}, {}", device_, runtime_.device_name(device_));
}

std::byte* CudaPlace::allocate(size_t bytes) {
    void* memory = nullptr;
    runtime_.need(runtime_.allocate(&memory, bytes), "cudaMalloc of a buffer; use a smaller -e");
    return static_cast<std::byte*>(memory);
}

void CudaPlace::copy(void* to, const void* from, size_t bytes) {
    runtime_.need(runtime_.memcpy_async(to, from, bytes, CudaRuntime::kAnyDirection, stream_), "cudaMemcpyAsync");
    wait();
}

void CudaPlace::wait() {
    runtime_.need(runtime_.stream_synchronize(stream_), "cudaStreamSynchronize");
}

}  // namespace ringccl::perf
