// The fingerprints of the last collectives, many more than the flight recorder keeps: what a rank is asked for when another one
// has been waiting in a collective that most of them left behind long ago.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>

#include "base/operation.h"

namespace ringccl {

// One thread writes, any may read.
class PrintHistory {
public:
    // How far ranks run ahead of one that stands still is bounded by what sockets hold, megabytes of the smallest messages,
    // and by the time until it says that it waits (kFirstNotice, src/engine/engine.cc) at some microseconds per operation.
    static constexpr uint64_t kRemembered = 1 << 15;

    PrintHistory() : words_(static_cast<uint64_t*>(std::calloc(2 * kRemembered, sizeof(uint64_t)))) {
        if (words_ == nullptr) throw std::bad_alloc();
    }

    // Sequence numbers come in order. A number below `begun` may be asked for, so `begun` is to be raised afterwards.
    void keep(const Fingerprint& print) {
        put(print.sequence, 0, print.count);
        put(print.sequence, 1,
            static_cast<uint64_t>(print.kind) | uint64_t{print.type} << 8 | static_cast<uint64_t>(print.op) << 16 |
                uint64_t{static_cast<uint32_t>(print.root)} << 32);
    }

    // nullopt: not begun, or forgotten. While one is read the writer may come to reuse its place; as stores release and loads
    // acquire, who reads a word of the later one also sees how far `begun` was by then.
    std::optional<Fingerprint> find(uint64_t sequence, const std::atomic<uint64_t>& begun) const {
        if (sequence >= begun.load(std::memory_order_acquire)) return std::nullopt;
        const uint64_t count = get(sequence, 0), what = get(sequence, 1);
        if (begun.load(std::memory_order_acquire) - sequence >= kRemembered) return std::nullopt;
        return Fingerprint{sequence,
                           count,
                           static_cast<Kind>(what & 0xff),
                           static_cast<uint8_t>(what >> 8),
                           static_cast<Op>(what >> 16 & 0xff),
                           0,
                           static_cast<int32_t>(static_cast<uint32_t>(what >> 32))};
    }

private:
    struct Free {
        void operator()(void* at) const { std::free(at); }
    };
    std::atomic_ref<uint64_t> word(uint64_t sequence, int which) const {
        return std::atomic_ref(words_[sequence % kRemembered * 2 + which]);
    }
    void put(uint64_t sequence, int which, uint64_t value) { word(sequence, which).store(value, std::memory_order_release); }
    uint64_t get(uint64_t sequence, int which) const { return word(sequence, which).load(std::memory_order_acquire); }

    std::unique_ptr<uint64_t[], Free> words_;  // count and all the rest, by turns; pages that nobody has needed cost nothing
};

}  // namespace ringccl
