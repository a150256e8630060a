#include "base/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ringccl {
namespace {

long membarrier(int command) {
    return syscall(SYS_membarrier, command, 0, 0);
}

}  // namespace

bool kernel_fences() {
    static const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    return registered;
}

void heavy_fence() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!kernel_fences() || membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
    // A forked child need not have inherited the registration.
    membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

bool takes_part_in_fences() {
    static const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
    return registered;
}

bool heavy_fence_for_all() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
}

}  // namespace ringccl
