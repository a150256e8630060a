// Memory to send from or receive into, between two guard bands that nobody may touch.
#pragma once

#include <cstddef>
#include <string>

namespace ringccl::perf {

class Buffer {
public:
    // `ring`: from ringMemAlloc, else from the C++ heap, page-aligned either way. Throws std::runtime_error.
    Buffer(size_t bytes, bool ring);
    ~Buffer();
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    std::byte* data() const { return base_ + kGuard; }
    size_t bytes() const { return bytes_; }

    // Writes a pattern into the guard bands: before data(), and behind its first `used` bytes, which are all that a call gets.
    void guard(size_t used);
    // Bytes of that pattern that have changed.
    size_t damage(size_t used) const;

    // Fills a result's place with what no result looks like.
    static void poison(void* at, size_t bytes);

private:
    static constexpr size_t kGuard = 4096;

    std::byte* base_ = nullptr;
    size_t bytes_;
    bool ring_;
};

}  // namespace ringccl::perf
