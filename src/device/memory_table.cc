#include "device/memory_table.h"

#include <mutex>

namespace ringccl {

MemoryTable& MemoryTable::of_process() {
    // Never destroyed: a static communicator of the program may still be using blocks while statics go away.
    static auto* table = new MemoryTable;
    return *table;
}

Status MemoryTable::allocate(void** ptr, size_t bytes) {
    if (ptr == nullptr) return failure(ringInvalidArgument, "ringMemAlloc: ptr is NULL");
    if (bytes == 0) return failure(ringInvalidArgument, "ringMemAlloc: bytes is 0; ask for at least one");
    RINGCCL_ASSIGN(auto block, SharedBlock::create("ringccl-memory", bytes));
    *ptr = block->data();
    std::unique_lock lock(mutex_);
    blocks_.emplace(block->data(), std::move(block));
    count_.store(blocks_.size(), std::memory_order_relaxed);
    return {};
}

Status MemoryTable::free(void* ptr) {
    std::unique_lock lock(mutex_);
    auto found = blocks_.find(static_cast<const std::byte*>(ptr));
    if (found == blocks_.end())
        return failure(ringInvalidArgument, "ringMemFree: {} is not from ringMemAlloc, or was freed before", ptr);
    found->second->discard();  // no operation is using it, says the contract; peers' mappings must not hold its pages
    blocks_.erase(found);
    count_.store(blocks_.size(), std::memory_order_relaxed);
    return {};
}

std::shared_ptr<SharedBlock> MemoryTable::find(const void* at, size_t bytes) const {
    if (count_.load(std::memory_order_relaxed) == 0) return nullptr;
    std::shared_lock lock(mutex_);
    auto next = blocks_.upper_bound(static_cast<const std::byte*>(at));
    if (next == blocks_.begin()) return nullptr;
    const auto& block = std::prev(next)->second;
    return block->contains(at, bytes) ? block : nullptr;
}

}  // namespace ringccl
