#include "device/doorbell.h"

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/asymmetric_fence.h"

namespace ringccl {
namespace {

// For who may miss a ring.
constexpr std::chrono::microseconds kShortSleep(1000);

// Not FUTEX_PRIVATE: the word is shared between processes.
long futex(std::atomic<uint32_t>& word, int what, uint32_t value, const timespec* limit) {
    return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), what, value, limit, nullptr, 0);
}

timespec to_timespec(std::chrono::microseconds span) {
    return {static_cast<time_t>(span.count() / 1000000), static_cast<long>(span.count() % 1000000 * 1000)};
}

}  // namespace

bool needs_fence(const DoorbellWord& word) {
    return word.fences_peers.load(std::memory_order_relaxed) == 0 || !takes_part_in_fences();
}

void ring(DoorbellWord& word, int eventfd) {
    const uint32_t state = word.state.load(std::memory_order_relaxed);
    if (state == DoorbellWord::awake) return;
    word.rings.fetch_add(1, std::memory_order_seq_cst);
    if (state == DoorbellWord::on_futex) {
        futex(word.rings, FUTEX_WAKE, 1, nullptr);
    } else if (eventfd >= 0) {
        const uint64_t one = 1;
        [[maybe_unused]] ssize_t written = write(eventfd, &one, sizeof one);  // full means rung already
    }
}

Doorbell::Doorbell() {
    own_.eventfd = -1;
}

void Doorbell::live_in(DoorbellWord* word) {
    word_ = word;
    word_->eventfd = event_.get();
}

void Doorbell::fence_peers() {
    if (takes_part_in_fences()) word_->fences_peers.store(1, std::memory_order_relaxed);
}

Status Doorbell::open_eventfd() {
    if (event_) return {};
    event_.reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!event_) return system_failure(errno, "eventfd");
    word_->eventfd = event_.get();
    return {};
}

void Doorbell::ring_self() {
    word_->rings.fetch_add(1, std::memory_order_seq_cst);
    futex(word_->rings, FUTEX_WAKE, 1, nullptr);
    if (event_) {
        const uint64_t one = 1;
        [[maybe_unused]] ssize_t written = write(event_.get(), &one, sizeof one);
    }
}

void Doorbell::announce(bool sockets) {
    seen_ = word_->rings.load(std::memory_order_seq_cst);
    word_->state.store(sockets ? DoorbellWord::on_eventfd : DoorbellWord::on_futex, std::memory_order_seq_cst);
    if (word_->fences_peers.load(std::memory_order_relaxed) != 0)
        unfenced_ = !heavy_fence_for_all();
    else
        std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Doorbell::sleep(std::vector<pollfd>& descriptors, std::chrono::microseconds limit) {
    if (unfenced_) limit = std::min(limit, kShortSleep);
    if (descriptors.empty()) {
        const timespec span = to_timespec(limit);
        futex(word_->rings, FUTEX_WAIT, seen_, &span);
        return;
    }
    if (look_often_ || !event_) limit = std::min(limit, kShortSleep);
    if (word_->rings.load(std::memory_order_seq_cst) != seen_) return;
    if (event_) descriptors.push_back({event_.get(), POLLIN, 0});
    const timespec span = to_timespec(limit);
    ppoll(descriptors.data(), descriptors.size(), &span, nullptr);
    if (event_) {
        uint64_t count;
        [[maybe_unused]] ssize_t got = read(event_.get(), &count, sizeof count);
        descriptors.pop_back();
    }
}

void Doorbell::awake() {
    word_->state.store(DoorbellWord::awake, std::memory_order_relaxed);
}

}  // namespace ringccl
