// Another rank of this host: its arena, its doorbell, its shared blocks as mapped here.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/shared_block.h"
#include "transports/p2p/arena.h"

namespace ringccl {

struct Peer {
    int rank = 0;
    bool reached = false;
    bool same_process = false;
    bool must_pin = false;  // what it shows can be freed under a reader: pointers, memory of a device
    pid_t pid = 0;
    std::string courier;  // the name of its unix socket

    Arena arena;
    int eventfd = -1;  // to ring it while it sleeps on sockets
    bool to_ring = false;
    bool eventfd_sent = false;

    // What keeps the arena alive: the peer's own block (same process), or mappings of it and its descriptors.
    std::shared_ptr<Block> direct, stages[Arena::kStages];
    MappedBlock arena_map, doorbell_map;
    Fd event;

    // Blocks of the peer that have been shown to us. A handful, so a list; the last one used is kept in front.
    struct Shown {
        uint64_t id;
        MappedBlock map;
        bool on_host;
        std::shared_ptr<void> reach;  // of this rank's device, to host memory
    };
    std::vector<Shown> blocks;
    Shown* block(uint64_t id) {
        for (size_t i = 0; i < blocks.size(); ++i) {
            if (blocks[i].id != id) continue;
            if (i != 0) std::swap(blocks[0], blocks[i]);
            return &blocks[0];
        }
        return nullptr;
    }

    // Our blocks that the peer has been sent.
    std::vector<uint64_t> shown;
};

}  // namespace ringccl
