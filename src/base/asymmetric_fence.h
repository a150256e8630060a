// A pair of memory fences of which one costs nothing, because the other makes the kernel fence all threads of the process
// (membarrier(2), MEMBARRIER_CMD_PRIVATE_EXPEDITED). For "I write mine, then read yours" between a side that runs all the time
// and one that runs once: the frequent side takes the light fence, the rare one the heavy.
#pragma once

#include <atomic>

namespace ringccl {

// Whether the kernel does the heavy fence; if not, both are ordinary full fences.
bool kernel_fences();

inline void light_fence() {
    static const bool free = kernel_fences();
    if (free)
        std::atomic_signal_fence(std::memory_order_seq_cst);
    else
        std::atomic_thread_fence(std::memory_order_seq_cst);
}

void heavy_fence();

}  // namespace ringccl
