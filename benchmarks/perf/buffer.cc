#include "perf/buffer.h"

#include <cstring>

namespace ringccl::perf {
namespace {

constexpr std::byte kPattern{0xA5};
constexpr std::byte kPoison{0xC3};

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

Buffer::Buffer(size_t bytes, Place& place) : place_(place), memory_(place.allocate(bytes + 2 * kGuard)), image_(memory_) {
    if (place_.reached_by_cpus()) return;
    separate_.resize(bytes + 2 * kGuard);
    image_ = separate_.data();
}

Buffer::~Buffer() {
    place_.release(memory_);
}

void Buffer::push(size_t used) {
    if (image_ != memory_) place_.copy(memory_, image_, used + 2 * kGuard);
}

void Buffer::pull(size_t used) {
    if (image_ != memory_) place_.copy(image_, memory_, used + 2 * kGuard);
}

void Buffer::guard(size_t used) {
    set(image_, kGuard, kPattern);
    set(image() + used, kGuard, kPattern);
}

size_t Buffer::damage(size_t used) const {
    return count_other(image_, kGuard, kPattern) + count_other(image() + used, kGuard, kPattern);
}

void Buffer::poison(void* at, size_t bytes) {
    set(static_cast<std::byte*>(at), bytes, kPoison);
}

}  // namespace ringccl::perf
