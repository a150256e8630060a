// Library memory in which results wait until the peers they were offered to have taken them. One ring of bytes per lane: slices
// are placed one behind the other and freed in the same order, so a slice outlives the operation that made it without anybody
// waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/device.h"
#include "transports/transport.h"

namespace ringccl {

class Stage {
public:
    static constexpr size_t kAlign = Device::kAlign;

    Stage() = default;
    // Serves from [offset, offset + bytes) of the block.
    Stage(const Block* block, size_t offset, size_t bytes)
        : block_(block), base_(block->data() + offset), capacity_(bytes / kAlign * kAlign) {}

    const Block* block() const { return block_; }

    // Memory for one slice, or null if peers must first take more. Followed by commit() or not used.
    std::byte* allocate(size_t bytes);
    // The last allocation is in use, until each link that it then awaits has taken its slice of that number.
    void commit();
    void await(SendLink& link, uint64_t number);

private:
    struct Waiter {
        SendLink* link;
        uint64_t number;
    };
    struct Lease {
        size_t end;      // of its bytes, counted from the beginning of time
        size_t waiters;  // how many of waiters_
    };
    void start_over_if_empty();
    void reclaim();

    const Block* block_ = nullptr;
    std::byte* base_ = nullptr;
    size_t capacity_ = 0;
    size_t head_ = 0, tail_ = 0;  // bytes ever placed and ever freed; the difference is in use
    size_t pending_end_ = 0;      // of the allocation that is not committed yet
    size_t next_look_ = 0;        // the head at which it is seen whether all has been taken

    // Queues as vectors with a moving front: they reach their size once and then allocate nothing.
    std::vector<Lease> leases_;
    std::vector<Waiter> waiters_;
    size_t first_lease_ = 0, first_waiter_ = 0;
};

}  // namespace ringccl
