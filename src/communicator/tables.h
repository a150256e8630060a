// What a user has made with a communicator beside operations: pre-multiplied sums and registered memory.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/status.h"
#include "device/block.h"

namespace ringccl {

// The scalar of a pre-multiplied sum.
struct UserOp {
    ringDataType_t type;
    double scalar;  // of float types
    uint64_t bits;  // of integer types: the scalar's bytes, little end first
};

class UserOps {
public:
    // A ringRedOp_t, never one given out before.
    Result<int> add(const UserOp& op);
    Status remove(int handle);
    std::optional<UserOp> find(int handle) const;

private:
    mutable std::mutex mutex_;
    std::map<int, UserOp> ops_;
    int next_ = ringNumOps;
};

// Host links need no preparation: blocks of ringMemAlloc are recognised, other memory is fetched or copied. Memory of a device
// can be shown to other processes only if it is registered. Ranges are noted for transports that register memory too.
class Registrations {
public:
    // `block`: what holds the range, where that can be shown to others, or null.
    void* add(void* buffer, size_t bytes, std::shared_ptr<Block> block);
    Status remove(void* handle);
    // The block of a registered range that holds this address, or null.
    std::shared_ptr<Block> find(const void* at) const;

private:
    struct Range {
        void* begin;
        size_t bytes;
        std::shared_ptr<Block> block;
    };
    mutable std::mutex mutex_;
    std::map<void*, Range> ranges_;
    uintptr_t next_ = 1;
};

}  // namespace ringccl
