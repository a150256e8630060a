// All blocks that ringMemAlloc has given out in this process. It has no communicator to hang off: ringMemAlloc takes none.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <shared_mutex>

#include "device/shared_block.h"

namespace ringccl {

class MemoryTable {
public:
    static MemoryTable& of_process();

    Status allocate(void** ptr, size_t bytes);
    Status free(void* ptr);

    // The block that holds [at, at + bytes), or null. Cheap when ringMemAlloc was never used.
    std::shared_ptr<SharedBlock> find(const void* at, size_t bytes) const;

private:
    mutable std::shared_mutex mutex_;
    std::map<const std::byte*, std::shared_ptr<SharedBlock>> blocks_;
    std::atomic<size_t> count_{0};
};

}  // namespace ringccl
