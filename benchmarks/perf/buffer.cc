#include "perf/buffer.h"

#include <fmt/format.h>

#include <cstring>
#include <new>
#include <stdexcept>

#include "ringccl/ringccl.h"

namespace ringccl::perf {
namespace {

constexpr std::byte kPattern{0xA5};
constexpr std::byte kPoison{0xC3};
constexpr std::align_val_t kPage{4096};

// Against itself, shifted by one: all bytes are equal if the first is right. memcmp runs at memory speed.
size_t count_other(const std::byte* at, size_t bytes, std::byte value) {
    if (bytes == 0 || (at[0] == value && std::memcmp(at, at + 1, bytes - 1) == 0)) return 0;
    size_t other = 0;
    for (size_t i = 0; i < bytes; ++i) other += at[i] != value;
    return other;
}

void set(std::byte* at, size_t bytes, std::byte value) {
    std::memset(at, std::to_integer<int>(value), bytes);
}

}  // namespace

Buffer::Buffer(size_t bytes, bool ring) : bytes_(bytes), ring_(ring) {
    size_t whole = bytes + 2 * kGuard;
    if (ring) {
        void* memory = nullptr;
        if (ringMemAlloc(&memory, whole) != ringSuccess) {
            throw std::runtime_error(fmt::format("ringMemAlloc of {} bytes: {}", whole, ringGetLastError(nullptr)));
        }
        base_ = static_cast<std::byte*>(memory);
    } else {
        base_ = static_cast<std::byte*>(::operator new(whole, kPage, std::nothrow));
        if (!base_) throw std::runtime_error(fmt::format("no memory for a buffer of {} bytes; use a smaller -e", whole));
    }
}

Buffer::~Buffer() {
    if (ring_) {
        ringMemFree(base_);
    } else {
        ::operator delete(base_, kPage);
    }
}

void Buffer::guard(size_t used) {
    set(base_, kGuard, kPattern);
    set(data() + used, kGuard, kPattern);
}

size_t Buffer::damage(size_t used) const {
    return count_other(base_, kGuard, kPattern) + count_other(data() + used, kGuard, kPattern);
}

void Buffer::poison(void* at, size_t bytes) {
    set(static_cast<std::byte*>(at), bytes, kPoison);
}

}  // namespace ringccl::perf
