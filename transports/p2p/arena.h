// The memory through which the ranks of one host speak: one arena per rank, written by that rank alone and mapped read-only by
// the others, except for the doorbell page, which others must ring.
//
//     page 0            the doorbell
//     the notice        whether this rank has withdrawn what it offered; the ids of its stages
//     then, per peer and lane:
//       released        how many of the peer's slices this rank is done with (this rank is the receiver)
//       reading         how many slices of the peer's memory this rank is reading, where that could be freed
//       fetches         whether this rank has proved that it can read the peer's memory by process_vm_readv
//       sees            whether its device has proved that it can read memory of the peer's
//       outbox          kLinkDepth entries that this rank fills for the peer (this rank is the sender)
//
// An entry is two cache lines; a payload of up to kInlineBytes lies in it, the first of them in the same line as the number
// that announces it, so that the smallest messages cost one transfer of one line.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/operation.h"
#include "device/doorbell.h"
#include "device/shared_block.h"
#include "plan/plan.h"
#include "transports/transport.h"

namespace ringccl {

constexpr size_t kInlineBytes = 88;

struct alignas(128) Entry {
    enum class Form : uint32_t {
        inside,   // the payload is in this entry
        block,    // at offset `where` of the shared block with id `block`
        pointer,  // at address `where`; reader and writer are one process
        foreign   // at address `where` of the writer's process, to be fetched by process_vm_readv
    };
    struct Place {
        uint64_t where;
        uint64_t block;
    };

    std::atomic<uint64_t> number;  // the slice's number, from 1; stored last
    Fingerprint print;
    Form form;
    uint32_t bytes;
    union {
        Place place;
        std::byte inside[kInlineBytes];
    };
};
static_assert(sizeof(Entry) == 128);

// The view of one rank's arena, its own or a mapped peer's.
class Arena {
public:
    static constexpr size_t kDoorbellBytes = 4096;
    static constexpr size_t kStages = 2;  // on the device, and on the host for those who are not shown the former
    static size_t bytes(int world_size) {
        return kDoorbellBytes + sizeof(Notice) + static_cast<size_t>(world_size) * kLanes * sizeof(PerLane);
    }

    Arena() = default;
    // `doorbell` is where page 0 is writable; `base` is the whole arena.
    Arena(std::byte* doorbell, std::byte* base) : doorbell_(doorbell), base_(base) {}

    DoorbellWord* doorbell() const { return reinterpret_cast<DoorbellWord*>(doorbell_); }
    // The ids of the owner's stages, for ranks of the same process, which must keep them alive as long as they may read there.
    std::atomic<uint64_t>* stage_id(size_t stage) const { return &notice()->stage_id[stage]; }
    std::atomic<uint32_t>* withdrawn() const { return &notice()->withdrawn; }
    std::atomic<uint64_t>* released(int peer, int lane) const { return &at(peer, lane)->released; }
    std::atomic<uint32_t>* reading(int peer, int lane) const { return &at(peer, lane)->reading; }
    std::atomic<uint32_t>* fetches(int peer) const { return &at(peer, 0)->fetches; }
    std::atomic<uint32_t>* sees(int peer) const { return &at(peer, 0)->sees; }
    Entry* outbox(int peer, int lane) const { return at(peer, lane)->outbox; }

private:
    struct alignas(128) Notice {
        std::atomic<uint32_t> withdrawn;
        std::atomic<uint64_t> stage_id[kStages];
    };
    struct PerLane {
        Entry outbox[kLinkDepth];
        alignas(128) std::atomic<uint64_t> released;
        std::atomic<uint32_t> fetches, sees;
        alignas(128) std::atomic<uint32_t> reading;  // a line of its own: the peer polls the one before
    };
    Notice* notice() const { return reinterpret_cast<Notice*>(base_ + kDoorbellBytes); }
    PerLane* at(int peer, int lane) const {
        return reinterpret_cast<PerLane*>(base_ + kDoorbellBytes + sizeof(Notice)) + static_cast<size_t>(peer) * kLanes + lane;
    }

    std::byte* doorbell_ = nullptr;
    std::byte* base_ = nullptr;
};

}  // namespace ringccl
