// Whether a communicator can go on. The first error stays; everything that waits looks here.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/deadline.h"
#include "base/status.h"

namespace ringccl {

class Health {
public:
    bool good() const { return !stop_.load(std::memory_order_relaxed); }
    // What waiting code polls: set once the communicator cannot go on.
    const std::atomic<bool>& stop() const { return stop_; }

    // Records the first failure; later ones change nothing. True if this was the first.
    bool fail(const Status& why) {
        std::lock_guard lock(mutex_);
        if (!first_.ok()) return false;
        first_ = why;
        stop_.store(true, std::memory_order_release);
        failed_.notify_all();
        return true;
    }
    Status first() const {
        std::lock_guard lock(mutex_);
        return first_;
    }
    // Waits for a failure that another thread records; ok if none came.
    Status await(Deadline deadline) const {
        std::unique_lock lock(mutex_);
        failed_.wait_until(lock, deadline.at(), [&] { return !first_.ok(); });
        return first_;
    }

private:
    std::atomic<bool> stop_{false};
    mutable std::mutex mutex_;
    mutable std::condition_variable failed_;
    Status first_;
};

}  // namespace ringccl
