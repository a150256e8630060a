// Memory to send from or receive into, between two guard bands that nobody may touch.
#pragma once

#include <cstddef>
#include <vector>

#include "perf/place.h"

namespace ringccl::perf {

class Buffer {
public:
    // Throws std::runtime_error. `place` must outlive it.
    Buffer(size_t bytes, Place& place);
    ~Buffer();
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    // For calls.
    std::byte* data() const { return memory_ + kGuard; }
    // For CPUs: the same memory, or, where they do not reach it, an image of it, which push() copies there and pull() renews.
    // `used` as below.
    std::byte* image() const { return image_ + kGuard; }
    void push(size_t used);
    void pull(size_t used);

    // Writes a pattern into the image's guard bands: before it, and behind its first `used` bytes, which are all that a call
    // gets.
    void guard(size_t used);
    // Bytes of that pattern that have changed.
    size_t damage(size_t used) const;

    // Fills a result's place with what no result looks like.
    static void poison(void* at, size_t bytes);

private:
    static constexpr size_t kGuard = 4096;

    Place& place_;
    std::byte* memory_;
    std::vector<std::byte> separate_;
    std::byte* image_;
};

}  // namespace ringccl::perf
