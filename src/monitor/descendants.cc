#include "monitor/descendants.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace ringccl {
namespace {

// One bit per descriptor. Pages that are never written cost nothing.
constexpr int kNumbers = 1 << 20;
std::atomic<uint64_t> marked[kNumbers / 64];
std::atomic<size_t> words_used{0};

// In the child, between fork's return in the C library and in the program: only async-signal-safe calls.
void close_marked() {
    const int before = errno;
    const size_t words = words_used.load(std::memory_order_relaxed);
    for (size_t word = 0; word < words; ++word) {
        uint64_t bits = marked[word].exchange(0, std::memory_order_relaxed);
        for (int bit = 0; bits != 0; ++bit, bits >>= 1)
            if (bits & 1) ::close(static_cast<int>(word * 64) + bit);
    }
    errno = before;
}

}  // namespace

void close_in_children(int fd) {
    static const int registered = ::pthread_atfork(nullptr, nullptr, close_marked);
    (void)registered;
    if (fd < 0 || fd >= kNumbers) return;
    const size_t word = static_cast<size_t>(fd) / 64;
    size_t used = words_used.load(std::memory_order_relaxed);
    while (used <= word && !words_used.compare_exchange_weak(used, word + 1, std::memory_order_relaxed)) {
    }
    marked[word].fetch_or(uint64_t{1} << (fd % 64), std::memory_order_relaxed);
}

void leave_to_children(int fd) {
    if (fd < 0 || fd >= kNumbers) return;
    marked[static_cast<size_t>(fd) / 64].fetch_and(~(uint64_t{1} << (fd % 64)), std::memory_order_relaxed);
}

}  // namespace ringccl
