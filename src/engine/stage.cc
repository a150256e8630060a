#include "engine/stage.h"

namespace ringccl {
namespace {

constexpr size_t kLooksPerRound = 16;

// Drops what lies before `front` once that is most of the vector.
template <class T>
void compact(std::vector<T>& queue, size_t& front) {
    if (front == queue.size()) {
        queue.clear();
        front = 0;
    } else if (front >= 64 && front * 2 >= queue.size()) {
        queue.erase(queue.begin(), queue.begin() + static_cast<ptrdiff_t>(front));
        front = 0;
    }
}

}  // namespace

std::byte* Stage::allocate(size_t bytes) {
    const size_t need = (bytes + kAlign - 1) / kAlign * kAlign;
    if (need > capacity_) return nullptr;
    // Now and then it is seen whether all has been taken, so that small messages meet the same few pages again and again.
    if (head_ >= next_look_) {
        start_over_if_empty();
        next_look_ = head_ + capacity_ / kLooksPerRound;
    }
    for (int attempt = 0; attempt < 2; ++attempt) {
        size_t begin = head_;
        const size_t at = begin % capacity_;
        if (at + need > capacity_) begin += capacity_ - at;  // a slice is in one piece: skip the rest of the round
        if (begin + need - tail_ <= capacity_) {
            pending_end_ = begin + need;
            return base_ + begin % capacity_;
        }
        start_over_if_empty();
    }
    return nullptr;
}

void Stage::start_over_if_empty() {
    reclaim();
    if (leases_.empty()) head_ = tail_ = next_look_ = 0;
}

void Stage::commit() {
    head_ = pending_end_;
    leases_.push_back({head_, 0});
}

void Stage::await(SendLink& link, uint64_t number) {
    ++leases_.back().waiters;
    waiters_.push_back({&link, number});
}

void Stage::reclaim() {
    while (first_lease_ < leases_.size()) {
        const Lease& lease = leases_[first_lease_];
        for (size_t i = 0; i < lease.waiters; ++i) {
            const Waiter& waiter = waiters_[first_waiter_ + i];
            if (waiter.link->taken() < waiter.number) {
                compact(leases_, first_lease_);
                compact(waiters_, first_waiter_);
                return;
            }
        }
        tail_ = lease.end;
        first_waiter_ += lease.waiters;
        ++first_lease_;
    }
    compact(leases_, first_lease_);
    compact(waiters_, first_waiter_);
}

}  // namespace ringccl
