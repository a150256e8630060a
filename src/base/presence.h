// Which ranks of a communicator are still there. Written by the monitor's thread, read by everybody.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringccl {

class Presence {
public:
    explicit Presence(int size) : ranks_(static_cast<size_t>(size)) {}

    // The rank said goodbye: all that it will ever store into shared memory can be read by who has seen this.
    void note_left(int rank) { ranks_[static_cast<size_t>(rank)].store(kLeft, std::memory_order_release); }
    // The rank died or does not answer.
    void note_lost(int rank) { ranks_[static_cast<size_t>(rank)].store(kLost, std::memory_order_release); }

    bool gone(int rank) const { return ranks_[static_cast<size_t>(rank)].load(std::memory_order_acquire) != kHere; }
    std::vector<int> lost() const {
        std::vector<int> found;
        for (size_t rank = 0; rank < ranks_.size(); ++rank)
            if (ranks_[rank].load(std::memory_order_acquire) == kLost) found.push_back(static_cast<int>(rank));
        return found;
    }

private:
    enum : uint8_t { kHere, kLeft, kLost };
    std::vector<std::atomic<uint8_t>> ranks_;
};

}  // namespace ringccl
