// Launches, and what a program asks about a kernel. The functions with two underscores are those that nvcc's host code calls.
#include <cuda_runtime_api.h>
#include <sched.h>
#include <unistd.h>

#include <vector>

#include "call.h"
#include "kernel.h"
#include "stream_handle.h"

using namespace standin;

namespace {

struct Configuration {
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;

cudaError_t launch_on(Kernel* kernel, dim3 grid, dim3 block, void** arguments, cudaStream_t stream) {
    return launch(kernel, grid, block, arguments, find_stream(stream).get());
}

}  // namespace

extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, CUstream_st* stream) {
    configurations.push_back({grid, block, shared_bytes, stream});
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
    if (configurations.empty()) return cudaErrorInvalidConfiguration;
    const Configuration& top = configurations.back();
    *grid = top.grid;
    *block = top.block;
    *shared_bytes = top.shared_bytes;
    *static_cast<cudaStream_t*>(stream) = top.stream;
    configurations.pop_back();
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* handle, const void* host_function) {
    Hidden hidden;
    Kernel* kernel = find_kernel(host_function);
    *handle = reinterpret_cast<cudaKernel_t>(kernel);
    return kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t handle, dim3 grid, dim3 block, void** arguments, size_t, cudaStream_t stream) {
    return call(__func__, [&] { return launch_on(reinterpret_cast<Kernel*>(handle), grid, block, arguments, stream); });
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t, cudaStream_t stream) {
    return call(__func__, [&] { return launch_on(find_kernel(function), grid, block, arguments, stream); });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* configuration, const void* function, void** arguments) {
    return call(__func__, [&] {
        return launch_on(find_kernel(function), configuration->gridDim, configuration->blockDim, arguments,
                         configuration->stream);
    });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
    return call(__func__, [&] {
        if (!find_kernel(function)) return cudaErrorInvalidDeviceFunction;
        *attributes = {};
        attributes->maxThreadsPerBlock = 1024;
        attributes->numRegs = 32;
        attributes->ptxVersion = attributes->binaryVersion = 90;
        return cudaSuccess;
    });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute, int) {
    return call(__func__, [&] { return find_kernel(function) ? cudaSuccess : cudaErrorInvalidDeviceFunction; });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int block, size_t,
                                                                   unsigned) {
    return call(__func__, [&] {
        if (block <= 0 || block > 1024) return cudaErrorInvalidValue;
        *blocks = 2048 / block;
        return find_kernel(function) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
    });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int block, size_t shared_bytes) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block, shared_bytes, 0);
}

// With few cores, whoever is waited for needs the one that this thread spins on.
void standin_pause() {
    static thread_local unsigned pauses = 0;
    if (++pauses % 64 != 0)
        sched_yield();
    else
        usleep(20);
}

}  // extern "C"
