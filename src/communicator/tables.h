// What a user has made with a communicator beside operations: pre-multiplied sums and registered memory.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/status.h"

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

// Host links need no preparation: blocks of ringMemAlloc are recognised, other memory is fetched or copied. Ranges are noted
// for transports that register memory with a device.
class Registrations {
public:
    void* add(void* buffer, size_t bytes);
    Status remove(void* handle);

private:
    std::mutex mutex_;
    std::map<void*, std::pair<void*, size_t>> ranges_;
    uintptr_t next_ = 1;
};

}  // namespace ringccl
