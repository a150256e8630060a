// What the machine's memory allows, without a library: processes whose operands all of them have mapped, two flags per call,
// and no more reads, sums and writes than there must be. --transport says how: "once": every rank sums everything for itself;
// "shared": every rank sums a part and writes it to all; "streamed": the same with non-temporal stores. Which is fastest
// depends on the size and on the machine's caches.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "contender.h"

namespace contest {
namespace {

constexpr size_t kInline = 2048;  // bytes that travel beside the flag

// Written by one rank, read by the others; one for even calls and one for odd ones, so nobody waits for its readers.
struct alignas(4096) Board {
    struct alignas(64) Slot {
        std::atomic<uint64_t> call{0};
        float data[kInline / sizeof(float)];
    };
    Slot slots[2];
    alignas(64) std::atomic<uint64_t> done{0};
};

// Memory of all ranks, equally much of each.
struct Area {
    std::byte* base;
    size_t each;
};

void pause_for(int look) {
    if (look % 64 == 63) sched_yield();
#if defined(__x86_64__)
    _mm_pause();
#endif
}

void await(const std::atomic<uint64_t>& word, uint64_t value) {
    for (int look = 0; word.load(std::memory_order_acquire) < value; ++look) pause_for(look);
}

// One float of the result after the other; the compiler makes vectors of it.
void sum(float* __restrict out, const float* const* in, size_t ranks, size_t count) {
    if (ranks == 2) {
        const float* __restrict a = in[0], * __restrict b = in[1];
        for (size_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
        return;
    }
    for (size_t i = 0; i < count; ++i) {
        float all = in[0][i];
        for (size_t r = 1; r < ranks; ++r) all += in[r][i];
        out[i] = all;
    }
}

void copy(float* out, const float* in, size_t count, bool streamed) {
#if defined(__AVX2__)
    if (streamed && reinterpret_cast<uintptr_t>(out) % 32 == 0) {
        size_t i = 0;
        for (; i + 8 <= count; i += 8) _mm256_stream_ps(out + i, _mm256_loadu_ps(in + i));
        out += i, in += i, count -= i;
    }
#endif
    std::memcpy(out, in, count * sizeof(float));
}

class Memory final : public Contender {
public:
    explicit Memory(const World& world)
        : folder_(world.folder), once_(world.transport == "once"), streamed_(world.transport == "streamed") {
        rank_ = world.rank;
        size_ = world.size;
        boards_ = reinterpret_cast<Board*>(map(sizeof(Board)).base);
    }

    bool can(Move move, Type type) const override { return move == Move::all_reduce && type == Type::float32; }

    std::byte* allocate(size_t bytes) override {
        areas_.push_back(map((bytes + 4095) / 4096 * 4096));
        return areas_.back().base + size_t(rank_) * areas_.back().each;
    }

    void perform(Move, Type, const std::byte* send, std::byte* recv, size_t count) override {
        ++call_;
        if (count * sizeof(float) <= kInline) return beside_the_flag(send, recv, count);
        Board& mine = boards_[rank_];
        mine.slots[0].call.store(call_, std::memory_order_release);
        std::vector<const float*> in;
        for (int rank = 0; rank < size_; ++rank) {
            await(boards_[rank].slots[0].call, call_);
            in.push_back(reinterpret_cast<const float*>(of_rank(send, rank)));
        }
        if (once_) {
            sum(reinterpret_cast<float*>(recv), in.data(), in.size(), count);
        } else {
            // In pieces that stay in the nearest cache until the last copy has been made.
            const size_t begin = count * size_t(rank_) / in.size() / 16 * 16;
            const size_t end = rank_ + 1 == size_ ? count : count * size_t(rank_ + 1) / in.size() / 16 * 16;
            constexpr size_t kPiece = 2048;
            alignas(64) float piece[kPiece];
            for (size_t at = begin; at < end; at += kPiece) {
                const size_t length = std::min(kPiece, end - at);
                std::vector<const float*>& from = in_;
                from.assign(in.begin(), in.end());
                for (const float*& one : from) one += at;
                sum(piece, from.data(), from.size(), length);
                for (int rank = 0; rank < size_; ++rank)
                    copy(reinterpret_cast<float*>(of_rank(recv, rank)) + at, piece, length, streamed_);
            }
#if defined(__x86_64__)
            _mm_sfence();
#endif
        }
        mine.done.store(call_, std::memory_order_release);
        for (int rank = 0; rank < size_; ++rank) await(boards_[rank].done, call_);
    }

    void share(void* data, size_t bytes) override {
        ++call_;
        Board::Slot& slot = boards_[0].slots[call_ % 2];
        if (rank_ == 0) {
            std::memcpy(slot.data, data, bytes);
            slot.call.store(call_, std::memory_order_release);
        }
        await(slot.call, call_);
        std::memcpy(data, slot.data, bytes);
        boards_[rank_].slots[call_ % 2].call.store(call_, std::memory_order_release);
        boards_[rank_].done.store(call_, std::memory_order_release);
        for (int rank = 0; rank < size_; ++rank) await(boards_[rank].done, call_);
    }

private:
    void beside_the_flag(const std::byte* send, std::byte* recv, size_t count) {
        Board::Slot& slot = boards_[rank_].slots[call_ % 2];
        std::memcpy(slot.data, send, count * sizeof(float));
        slot.call.store(call_, std::memory_order_release);
        in_.clear();
        for (int rank = 0; rank < size_; ++rank) {
            const Board::Slot& theirs = boards_[rank].slots[call_ % 2];
            await(theirs.call, call_);
            in_.push_back(rank == rank_ ? reinterpret_cast<const float*>(send) : theirs.data);
        }
        sum(reinterpret_cast<float*>(recv), in_.data(), in_.size(), count);
    }

    // Rank 0 makes the file, under a name that the others wait for.
    Area map(size_t each) {
        const std::string name = folder_ + "/memory" + std::to_string(maps_++), draft = name + ".part";
        const size_t all = each * size_t(size_);
        int file = -1;
        if (rank_ == 0) {
            file = open(draft.c_str(), O_RDWR | O_CREAT, 0600);
            if (file < 0 || ftruncate(file, static_cast<off_t>(all)) != 0) give_up("cannot make " + draft);
            std::rename(draft.c_str(), name.c_str());
        }
        while (file < 0) {
            file = open(name.c_str(), O_RDWR);
            if (file < 0) usleep(1000);
        }
        void* memory = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
        if (memory == MAP_FAILED) give_up("cannot map " + name);
        close(file);
        return {static_cast<std::byte*>(memory), each};
    }

    std::byte* of_rank(const std::byte* mine, int rank) const {
        for (const Area& area : areas_) {
            const std::byte* begin = area.base + size_t(rank_) * area.each;
            if (mine >= begin && mine < begin + area.each) return area.base + size_t(rank) * area.each + (mine - begin);
        }
        give_up("an operand that allocate() has not made");
    }

    const std::string folder_;
    const bool once_, streamed_;
    int maps_ = 0;
    Board* boards_ = nullptr;
    std::vector<Area> areas_;
    uint64_t call_ = 0;
    std::vector<const float*> in_;
};

}  // namespace

const bool kHasLauncher = false;

std::unique_ptr<Contender> make_contender(const World& world) {
    return std::make_unique<Memory>(world);
}

}  // namespace contest
