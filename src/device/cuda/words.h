// Words through which streams and CPUs tell each other how far they are, in host memory that all devices of the process reach.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/status.h"

namespace ringccl::cuda {

class Word {
public:
    // A word that nobody uses, with the value 0.
    static Result<Word> take(int device);
    Word() = default;
    Word(Word&& other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
    Word& operator=(Word&& other) noexcept {
        std::swap(at_, other.at_);
        return *this;
    }
    ~Word();

    // The word is not used again: some stream may still come to it.
    void leave() { at_ = nullptr; }

    uint32_t* address() const { return at_; }
    // Whether the word has come to `value`. It counts upwards and may start over behind 2^32 - 1.
    bool reached(uint32_t value) const {
        return static_cast<int32_t>(std::atomic_ref(*at_).load(std::memory_order_acquire) - value) >= 0;
    }
    void set(uint32_t value) { std::atomic_ref(*at_).store(value, std::memory_order_release); }

private:
    explicit Word(uint32_t* at) : at_(at) {}

    uint32_t* at_ = nullptr;
};

}  // namespace ringccl::cuda
