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

// The same between processes (MEMBARRIER_CMD_GLOBAL_EXPEDITED). The frequent side may leave its fence out if its process takes
// part and the rare side's heavy fence works.
bool takes_part_in_fences();
// False: the kernel refuses, and only this thread has been fenced.
bool heavy_fence_for_all();

}  // namespace ringccl
