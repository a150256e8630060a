#include "base/type.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/table.cuh"
#include "kernels/cuda/wait.cuh"

namespace ringccl::cuda {

cudaError_t launch_reduce(ringDataType_t type, Op op, void* dst, const void* const* src, int k, size_t count,
                          const Scale& scale, int max_blocks, cudaStream_t stream) {
    const void* kernel = reduce_function(type, op);
    if (kernel == nullptr || k < 1 || k > kMaxOperands || max_blocks < 1) return cudaErrorInvalidValue;
    if (count == 0) return cudaSuccess;
    const size_t bytes = type_size(type);
    if (k == 1 && op != Op::avg && op != Op::premul) {
        return dst == src[0] ? cudaSuccess : cudaMemcpyAsync(dst, src[0], count * bytes, cudaMemcpyDefault, stream);
    }
    ReduceArguments arguments = reduce_arguments(dst, src, k, count, bytes, scale);
    // As many threads as there are vectors, or edges where these are more; with the blocks used up each takes several.
    const size_t edges = count - arguments.vectors * (kVectorBytes / bytes);
    const size_t blocks = (std::max(arguments.vectors, edges) + kBlockThreads - 1) / kBlockThreads;
    const dim3 grid(static_cast<unsigned>(std::min(blocks, static_cast<size_t>(max_blocks))));
    void* parameters[] = {&arguments};
    return cudaLaunchKernel(kernel, grid, dim3(kBlockThreads), parameters, 0, stream);
}

cudaError_t launch_wait(const uint32_t* word, uint32_t value, cudaStream_t stream) {
    void* parameters[] = {&word, &value};
    return cudaLaunchKernel(&wait_kernel, dim3(1), dim3(1), parameters, 0, stream);
}

}  // namespace ringccl::cuda
