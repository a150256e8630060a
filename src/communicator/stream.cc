#include "communicator/stream.h"

namespace ringccl {

uint64_t Stream::take_ticket() {
    std::lock_guard lock(mutex_);
    return issued_++;
}

void Stream::await_turn(uint64_t ticket) {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return passed_ == ticket; });
}

void Stream::pass_turn(const Status& outcome) {
    std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = outcome;
    ++passed_;
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
