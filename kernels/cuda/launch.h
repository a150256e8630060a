// Reductions on a CUDA stream.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cpu/kernels.h"

namespace ringccl::cuda {

// What reduce_kernel(type, op) of the CPU does, to the bit, on memory that the stream's device can reach. Begun, not waited
// for. At most `max_blocks` (1 or more) blocks of threads are used, so that computation beside it finds room.
// cudaErrorInvalidValue: k is not in 1 .. 128, or type or op is unknown. Else what the launch returned.
cudaError_t launch_reduce(ringDataType_t type, Op op, void* dst, const void* const* src, int k, size_t count,
                          const Scale& scale, int max_blocks, cudaStream_t stream);

// Holds the stream until *word - value, as a signed number, is not negative. The word is host memory that the device reaches.
cudaError_t launch_wait(const uint32_t* word, uint32_t value, cudaStream_t stream);

}  // namespace ringccl::cuda
