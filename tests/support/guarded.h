// A buffer between two guard bands, at any alignment. Whoever writes a byte outside it is found out.
#pragma once

#include <cstddef>
#include <vector>

namespace ringccl::test {

class Guarded {
public:
    // `bytes` usable bytes that begin `shift` bytes after a 64-byte boundary.
    Guarded(size_t bytes, size_t shift) : storage_(kGuard + 64 + shift + bytes + kGuard), bytes_(bytes) {
        auto base = reinterpret_cast<size_t>(storage_.data()) + kGuard;
        begin_ = (base + 63) / 64 * 64 - base + kGuard + shift;
        for (size_t i = 0; i < storage_.size(); ++i) storage_[i] = pattern(i);
    }

    std::byte* data() { return storage_.data() + begin_; }
    size_t bytes() const { return bytes_; }
    // With the bands.
    std::vector<std::byte>& all() { return storage_; }

    bool intact() const {
        for (size_t i = 0; i < begin_; ++i)
            if (storage_[i] != pattern(i)) return false;
        for (size_t i = begin_ + bytes_; i < storage_.size(); ++i)
            if (storage_[i] != pattern(i)) return false;
        return true;
    }

private:
    static constexpr size_t kGuard = 256;

    static std::byte pattern(size_t i) { return std::byte(0xa5 ^ (i * 7)); }

    std::vector<std::byte> storage_;
    size_t begin_ = 0;
    size_t bytes_;
};

}  // namespace ringccl::test
