// Hierarchical allReduce for several hosts with L ranks each:
//
//     phase 0   scatter-reduce within the host: local rank l combines chunk l of its host's ranks    (direct)
//     phase 1   allReduce of chunk l among the ranks l of all hosts                                  (ring)
//     phase 2   all-gather within the host                                                           (direct)
//
// Each host's network carries 2(H-1)/H * K bytes once, in H - 1 long steps instead of a ring's N - 1, and all L ranks of a host
// use it side by side. The phases are needed because a step of phase 1 depends on parts of a chunk of phase 0: slices of
// different steps do not correspond (law 1).
//
// No step needs `stage`: the inputs shown in phase 0 are overwritten in phase 2, by results made from them.
#include "plan/pieces.h"
#include "plan/planners.h"

namespace ringccl {
namespace {

// The ranks of this rank's host, and the ranks at the same place of all hosts, both ascending by rank or host number.
void find_groups(const World& world, Group& near, Group& far) {
    std::vector<std::vector<int>> hosts;
    for (int rank = 0; rank < world.size; ++rank) {
        const size_t host = world.host.empty() ? 0 : static_cast<size_t>(world.host[rank]);
        if (host >= hosts.size()) hosts.resize(host + 1);
        if (rank == world.rank) near.me = static_cast<int>(hosts[host].size()), far.me = static_cast<int>(host);
        hosts[host].push_back(rank);
    }
    near.members = hosts[far.me];
    for (const std::vector<int>& host : hosts) far.members.push_back(host[near.me]);
}

}  // namespace

Plan plan_hierarchical(const Shape& shape, const World& world) {
    if (world.size == 1) return plan_alone(shape, world);
    Group near, far;
    find_groups(world, near, far);
    if (far.size() == 1) return plan_twoshot(shape, world);
    if (near.size() == 1) return plan_ring(shape, world, 1);
    std::vector<Chunk> chunks = chunks_of(shape, near, {0, shape.count});
    Chunk& mine = chunks[near.me];
    std::vector<Step> steps;
    auto enter = [&, begin = size_t{0}](uint8_t phase) mutable {  // all steps since the last call belong to this phase
        for (; begin < steps.size(); ++begin) steps[begin].phase = phase;
    };

    direct_scatter_reduce(steps, near, chunks, {});
    steps.back().finish = false;
    enter(0);

    std::vector<Chunk> pieces;  // of chunk `mine`, whose sum over this host lies in recv now
    for (int h = 0; h < far.size(); ++h) {
        const Range piece = part_of({mine.to.offset, mine.count}, far.size(), h, shape.type);
        pieces.push_back({piece.count, {Buffer::recv, piece.offset}, {Buffer::recv, piece.offset}});
    }
    ring_scatter_reduce(steps, far, pieces, true);
    ring_all_gather(steps, far, pieces, true);
    enter(1);

    mine.from = mine.to;
    direct_all_gather(steps, near, chunks, false);
    enter(2);
    return {.algorithm = "hierarchical", .channels = {{.lane = 0, .steps = std::move(steps)}}, .burst = near.size() - 1};
}

}  // namespace ringccl
