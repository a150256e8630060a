// Whether a communicator can go on. The first error stays; everything that waits looks here.
#pragma once

#include <atomic>
#include <mutex>

#include "base/status.h"

namespace ringccl {

class Health {
public:
    bool good() const { return !stop_.load(std::memory_order_relaxed); }
    // What waiting code polls: set once the communicator cannot go on.
    const std::atomic<bool>& stop() const { return stop_; }

    // Records the first failure; later ones change nothing.
    void fail(const Status& why) {
        std::lock_guard lock(mutex_);
        if (first_.ok()) first_ = why;
        stop_.store(true, std::memory_order_release);
    }
    Status first() const {
        std::lock_guard lock(mutex_);
        return first_;
    }

private:
    std::atomic<bool> stop_{false};
    mutable std::mutex mutex_;
    Status first_;
};

}  // namespace ringccl
