// Direct plans: everybody speaks to everybody. They have the fewest dependent steps there can be, one or two, and where ranks
// see each other's memory nothing is copied on the way: a publish is a flag, and the combine reads all inputs in one pass.
#include "plan/pieces.h"
#include "plan/planners.h"

namespace ringccl {

// Each member first shows every other member that one's chunk, then combines its own from all. Starting with the next member
// keeps everybody from crowding round member 0.
void direct_scatter_reduce(std::vector<Step>& steps, const Group& group, const std::vector<Chunk>& chunks,
                           std::vector<int> sinks) {
    for (int i = 1; i < group.size(); ++i) {
        const int c = group.wrap(group.me + i);
        steps.push_back({.sinks = {group.member(c)}, .local = chunks[c].from, .count = chunks[c].count, .chunk = c});
    }
    const Chunk& mine = chunks[group.me];
    steps.push_back({.sources = group.others(),
                     .sinks = std::move(sinks),
                     .local = mine.from,
                     .dest = mine.to,
                     .count = mine.count,
                     .reduce = true,
                     .finish = true,
                     .chunk = group.me});
}

void direct_all_gather(std::vector<Step>& steps, const Group& group, const std::vector<Chunk>& chunks, bool reduced) {
    if (!reduced) {
        const Chunk& mine = chunks[group.me];
        steps.push_back({.sinks = group.others(), .local = mine.from, .dest = mine.to, .count = mine.count, .chunk = group.me});
    }
    for (int i = 1; i < group.size(); ++i) {
        const int c = group.wrap(group.me + i);
        steps.push_back({.sources = {group.member(c)}, .dest = chunks[c].to, .count = chunks[c].count, .chunk = c});
    }
}

Plan plan_oneshot(const Shape& shape, const World& world) {
    if (world.size == 1) return plan_alone(shape, world);
    const std::vector<int> others = rank_group(world).others();
    const Region input{Buffer::send, 0}, output{Buffer::recv, 0};
    // In place, this rank writes its result over its input as soon as it has everybody's, but the others may come to read it
    // much later: they get a copy.
    const Step publish{.sinks = others, .local = input, .count = shape.count, .stage = shape.in_place};
    const Step combine{.sources = others, .local = input, .dest = output, .count = shape.count, .reduce = true, .finish = true};
    Plan plan{.algorithm = "oneshot", .channels = {{.lane = 0, .steps = {publish, combine}}}, .burst = 1};
    return shape.kind == Kind::barrier ? barrier_of(std::move(plan)) : plan;
}

// No step needs `stage`: what is shown of chunk c is overwritten only by the finished chunk c, which its owner makes from it.
Plan plan_twoshot(const Shape& shape, const World& world) {
    if (world.size == 1) return plan_alone(shape, world);
    const Group group = rank_group(world);
    std::vector<Chunk> chunks = chunks_of(shape, group, {0, shape.count});
    std::vector<Step> steps;
    switch (shape.kind) {
        case Kind::scatter_reduce:
            direct_scatter_reduce(steps, group, chunks, {});
            break;
        case Kind::all_gather:
            direct_all_gather(steps, group, chunks, false);
            break;
        case Kind::reduce:  // only the root has room for results and takes the others' chunks
            if (world.rank == shape.root) {
                direct_scatter_reduce(steps, group, chunks, {});
                direct_all_gather(steps, group, chunks, true);
            } else {
                chunks[world.rank].to = {};
                direct_scatter_reduce(steps, group, chunks, {shape.root});
            }
            break;
        default:
            direct_scatter_reduce(steps, group, chunks, group.others());
            direct_all_gather(steps, group, chunks, true);
    }
    const int burst = shape.kind == Kind::all_gather ? 1 : world.size - 1;  // all are shown before anybody combines
    return {.algorithm = "twoshot", .channels = {{.lane = 0, .steps = std::move(steps)}}, .burst = burst};
}

}  // namespace ringccl
