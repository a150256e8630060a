// Another rank of this host: its arena, its doorbell, its shared blocks as mapped here.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transports/p2p/arena.h"

namespace ringccl {

struct Peer {
    int rank = 0;
    bool reached = false;
    bool same_process = false;
    pid_t pid = 0;
    std::string courier;  // the name of its unix socket

    Arena arena;
    int eventfd = -1;  // to ring it while it sleeps on sockets
    bool to_ring = false;
    bool eventfd_sent = false;

    // What keeps the arena alive: the peer's own block (same process), or mappings of it and its descriptors.
    std::shared_ptr<SharedBlock> direct, stage;
    MappedBlock arena_map, doorbell_map;
    Fd event;

    // Blocks of the peer that have been shown to us. A handful, so a list; the last one used is kept in front.
    std::vector<std::pair<uint64_t, MappedBlock>> blocks;
    const MappedBlock* block(uint64_t id) {
        for (size_t i = 0; i < blocks.size(); ++i) {
            if (blocks[i].first != id) continue;
            if (i != 0) std::swap(blocks[0], blocks[i]);
            return &blocks[0].second;
        }
        return nullptr;
    }

    // Our blocks that the peer has been sent.
    std::vector<uint64_t> shown;
};

}  // namespace ringccl
