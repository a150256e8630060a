// What only the driver has. It is asked for through the runtime, so that the module needs no libcuda to be loaded.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace ringccl::cuda {

class Driver {
public:
    static const Driver& of_process();

    // Whether streams can write and await words of memory (cuStreamWriteValue32, cuStreamWaitValue32).
    bool has_stream_values() const { return write_ != nullptr && wait_ != nullptr; }
    // The stream, when it comes there, stores `value`, after all that it did before is visible to everybody.
    cudaError_t write(cudaStream_t stream, uint32_t* word, uint32_t value) const;
    // The stream, when it comes there, goes on once *word - value, as a signed number, is not negative.
    cudaError_t wait(cudaStream_t stream, uint32_t* word, uint32_t value) const;

    // The allocation that holds `at`. False: it is none of cudaMalloc, or the driver cannot say.
    bool allocation_of(const void* at, void** base, size_t* bytes) const;

private:
    Driver();

    decltype(&cuStreamWriteValue32) write_ = nullptr;
    decltype(&cuStreamWaitValue32) wait_ = nullptr;
    decltype(&cuMemGetAddressRange) range_ = nullptr;
};

}  // namespace ringccl::cuda
