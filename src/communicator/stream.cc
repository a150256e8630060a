#include "communicator/stream.h"

#include <chrono>

namespace ringccl {

Result<uint64_t> Stream::take_ticket() {
    std::lock_guard lock(mutex_);
    return issued_++;
}

void Stream::await_turn(uint64_t ticket, const std::atomic<bool>& stop) {
    // Another communicator's work is before this one; whoever sets `stop` does not know this stream, hence the look now and
    // then.
    constexpr std::chrono::milliseconds kStopPoll{20};
    std::unique_lock lock(mutex_);
    while (passed_ != ticket && !stop.load(std::memory_order_acquire)) moved_.wait_for(lock, kStopPoll);
}

void Stream::pass_turn(uint64_t ticket, const Status& outcome) {
    std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = outcome;
    if (ticket != passed_) {
        passed_early_.insert(ticket);
        return;
    }
    do ++passed_;
    while (passed_early_.erase(passed_) != 0);
    moved_.notify_all();
}

Status Stream::synchronize() {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return passed_ == issued_; });
    return std::exchange(failure_, Status{});
}

Status Stream::query() {
    std::lock_guard lock(mutex_);
    if (passed_ == issued_) return failure_;
    return failure(ringInProgress, "the stream has {} pieces of work left", issued_ - passed_);
}

}  // namespace ringccl
