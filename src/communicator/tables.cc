#include "communicator/tables.h"

namespace ringccl {

Result<int> UserOps::add(const UserOp& op) {
    std::lock_guard lock(mutex_);
    if (next_ == ringMaxRedOp) return failure(ringInvalidUsage, "this communicator can make no more operations");
    ops_.emplace(next_, op);
    return next_++;
}

Status UserOps::remove(int handle) {
    std::lock_guard lock(mutex_);
    if (ops_.erase(handle) != 0) return {};
    return failure(ringInvalidArgument, "ringRedOpDestroy: op {} was not made by this communicator, or was destroyed before",
                   handle);
}

std::optional<UserOp> UserOps::find(int handle) const {
    std::lock_guard lock(mutex_);
    auto found = ops_.find(handle);
    return found == ops_.end() ? std::nullopt : std::optional(found->second);
}

void* Registrations::add(void* buffer, size_t bytes, std::shared_ptr<Block> block) {
    std::lock_guard lock(mutex_);
    void* handle = reinterpret_cast<void*>(next_++);
    ranges_.emplace(handle, Range{buffer, bytes, std::move(block)});
    return handle;
}

std::shared_ptr<Block> Registrations::find(const void* at) const {
    std::lock_guard lock(mutex_);
    for (const auto& [handle, range] : ranges_)
        if (range.block != nullptr && range.block->contains(at, 1)) return range.block;
    return nullptr;
}

Status Registrations::remove(void* handle) {
    std::lock_guard lock(mutex_);
    if (ranges_.erase(handle) != 0) return {};
    return failure(ringInvalidArgument, "ringCommDeregister: {} is no handle of this communicator, or was given back before",
                   handle);
}

}  // namespace ringccl
