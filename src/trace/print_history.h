// The fingerprints of past collectives, many more than the flight recorder keeps: what a rank is asked for when another one has
// been waiting in a collective that most of them left behind long ago.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>

#include "trace/what.h"

namespace ringccl {

// One thread writes, any may read. Equal calls in a row are one entry.
class PrintHistory {
public:
    // How far ranks run ahead of one that stands still is bounded by what sockets hold, some megabytes: with 64 bytes and more
    // per call, that is no more calls than this, however they differ.
    static constexpr uint64_t kRuns = 1 << 16;

    PrintHistory() : words_(static_cast<uint64_t*>(std::calloc(kRuns * kWords, sizeof(uint64_t)))) {
        if (words_ == nullptr) throw std::bad_alloc();
    }

    // Sequence numbers come in order. A number below `begun` may be asked for, so `begun` is to be raised afterwards.
    void keep(const Fingerprint& print) {
        const uint64_t packed = What{print.kind, print.type, print.op, print.root}.packed(),
                       runs = runs_.load(std::memory_order_relaxed);
        if (runs != 0 && last_what_ == packed && last_count_ == print.count) return;
        last_what_ = packed, last_count_ = print.count;
        put(runs, first, print.sequence);
        put(runs, count, print.count);
        put(runs, what, packed);
        runs_.store(runs + 1, std::memory_order_release);
    }

    // nullopt: not begun, or forgotten. While an entry is read the writer may come to reuse its place; as stores release and
    // loads acquire, who reads a word of the later one also sees how many there were by then. Places are reused in order, so
    // a search that one of them has led astray ends at an entry that is older still, and gone as well.
    std::optional<Fingerprint> find(uint64_t sequence, const std::atomic<uint64_t>& begun) const {
        if (sequence >= begun.load(std::memory_order_acquire)) return std::nullopt;
        const uint64_t runs = runs_.load(std::memory_order_acquire);
        uint64_t low = runs < kRuns ? 0 : runs - kRuns + 1, high = runs;  // the last that begins at or before `sequence`
        const uint64_t oldest = low;
        while (low < high) {
            const uint64_t middle = low + (high - low) / 2;
            if (get(middle, first) <= sequence)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == oldest) return std::nullopt;
        const uint64_t found = low - 1, its_count = get(found, count), its_what = get(found, what);
        if (runs_.load(std::memory_order_acquire) - found >= kRuns) return std::nullopt;
        const auto [kind, type, op, root] = What::of(its_what);
        return Fingerprint{sequence, its_count, kind, type, op, 0, root};
    }

private:
    enum Word { first, count, what, kWords };
    struct Free {
        void operator()(void* at) const { std::free(at); }
    };

    std::atomic_ref<uint64_t> word(uint64_t run, Word which) const {
        return std::atomic_ref(words_[run % kRuns * kWords + which]);
    }
    void put(uint64_t run, Word which, uint64_t value) { word(run, which).store(value, std::memory_order_release); }
    uint64_t get(uint64_t run, Word which) const { return word(run, which).load(std::memory_order_acquire); }

    std::unique_ptr<uint64_t[], Free> words_;  // pages that nobody has needed cost nothing
    std::atomic<uint64_t> runs_{0};
    uint64_t last_what_ = 0, last_count_ = 0;  // the writer's own copy
};

}  // namespace ringccl
