#include "device/cuda/driver.h"

#include <cstdint>
#include <cstdlib>

namespace ringccl::cuda {
namespace {

template <class Function>
void find(const char* name, Function& function) {
    constexpr unsigned kSince = 12000;  // the version whose meaning of the name is wanted
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    if (cudaGetDriverEntryPointByVersion(name, &found, kSince, cudaEnableDefault, &result) == cudaSuccess &&
        result == cudaDriverEntryPointSuccess)
        function = reinterpret_cast<Function>(found);
    else
        (void)cudaGetLastError();
}

// The runtime's errors have the driver's numbers.
cudaError_t runtime_error(CUresult result) {
    return static_cast<cudaError_t>(result);
}

CUdeviceptr address(const void* at) {
    return reinterpret_cast<CUdeviceptr>(at);
}

}  // namespace

const Driver& Driver::of_process() {
    static const Driver driver;
    return driver;
}

Driver::Driver() {
    find("cuStreamWriteValue32", write_);
    find("cuStreamWaitValue32", wait_);
    find("cuMemGetAddressRange", range_);
}

cudaError_t Driver::write(cudaStream_t stream, uint32_t* word, uint32_t value) const {
    return runtime_error(write_(stream, address(word), value, CU_STREAM_WRITE_VALUE_DEFAULT));
}

cudaError_t Driver::wait(cudaStream_t stream, uint32_t* word, uint32_t value) const {
    return runtime_error(wait_(stream, address(word), value, CU_STREAM_WAIT_VALUE_GEQ));
}

bool Driver::allocation_of(const void* at, void** base, size_t* bytes) const {
    CUdeviceptr begin = 0;
    if (range_ == nullptr || range_(&begin, bytes, address(at)) != CUDA_SUCCESS) return false;
    *base = reinterpret_cast<void*>(begin);
    return true;
}

}  // namespace ringccl::cuda
