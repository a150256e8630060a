#include "communicator/stream.h"

namespace ringccl {

uint64_t Stream::take_ticket() {
    std::lock_guard lock(mutex_);
    return issued_++;
}

bool Stream::wait_for_turn(uint64_t ticket, std::chrono::milliseconds span) {
    std::unique_lock lock(mutex_);
    return moved_.wait_for(lock, span, [&] { return passed_ == ticket; });
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

ringResult_t Stream::query() {
    std::lock_guard lock(mutex_);
    return passed_ != issued_ ? ringInProgress : failure_.code();
}

}  // namespace ringccl
