// Star: the parameter server. One rank does everything for all, so its link carries N - 1 times what anybody else's does. It is
// the baseline that the other plans are measured against, and hard to beat for a handful of bytes at two or three ranks.
#include "plan/pieces.h"
#include "plan/planners.h"

namespace ringccl {
namespace {

// The centre combines one rank's chunk after the other and hands it out; in place, a rank's chunk is overwritten only by what
// the centre made from it.
std::vector<Step> scatter_reduce(const Shape& shape, const World& world, int centre) {
    const Group group = rank_group(world);
    const std::vector<Chunk> chunks = chunks_of(shape, group, {0, shape.count});
    std::vector<Step> steps;
    for (int c = 0; c < world.size; ++c) {
        Step step{.local = chunks[c].from, .count = shape.count, .chunk = c};
        if (world.rank == centre) {
            step.sources = group.others();
            step.reduce = step.finish = true;
            if (c == centre) step.dest = chunks[c].to;
            if (c != centre) step.sinks = {c};
        } else {
            step.sinks = {centre};
        }
        steps.push_back(step);
    }
    if (world.rank != centre) {
        steps.push_back({.sources = {centre}, .dest = chunks[world.rank].to, .count = shape.count, .chunk = world.rank});
    }
    return steps;
}

// The centre passes each rank's block on to all the others.
std::vector<Step> all_gather(const Shape& shape, const World& world, int centre) {
    const std::vector<Chunk> chunks = chunks_of(shape, rank_group(world), {0, shape.count});
    std::vector<Step> steps;
    if (world.rank != centre) {
        const Chunk& mine = chunks[world.rank];
        steps.push_back({.sinks = {centre}, .local = mine.from, .dest = mine.to, .count = mine.count, .chunk = world.rank});
    }
    for (int c = 0; c < world.size; ++c) {
        Step step{.dest = chunks[c].to, .count = shape.count, .chunk = c};
        if (world.rank == centre) {
            if (c == centre) step.local = chunks[c].from;
            if (c != centre) step.sources = {c};
            for (int rank = 0; rank < world.size; ++rank) {
                if (rank != centre && rank != c) step.sinks.push_back(rank);
            }
        } else {
            if (c == world.rank) continue;
            step.sources = {centre};
        }
        steps.push_back(step);
    }
    return steps;
}

}  // namespace

Plan plan_star(const Shape& shape, const World& world) {
    if (world.size == 1) return plan_alone(shape, world);
    const bool rooted = shape.kind == Kind::broadcast || shape.kind == Kind::reduce;
    const int centre = rooted ? shape.root : 0;
    Plan plan{.algorithm = "star", .channels = {{}}, .burst = 1};
    std::vector<Step>& steps = plan.channels[0].steps;
    if (shape.kind == Kind::scatter_reduce) {
        steps = scatter_reduce(shape, world, centre);
        plan.burst = world.size;  // a rank takes its result only after it has sent all chunks
    } else if (shape.kind == Kind::all_gather) {
        steps = all_gather(shape, world, centre);
    } else {
        Tree tree{.parent = centre};
        if (world.rank == centre) tree = {.parent = -1, .children = rank_group(world).others()};
        steps = tree_steps(shape, tree);
    }
    return shape.kind == Kind::barrier ? barrier_of(std::move(plan)) : plan;
}

}  // namespace ringccl
