// The ring: scatter-reduce, then all-gather, each in N - 1 steps in which every rank sends one chunk to its right neighbour and
// takes another from its left (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
// J. Parallel Distrib. Comput. 69(2), 2009). Chunk c starts at rank c + 1, gathers one rank's share per step, and is complete
// when it comes home to rank c; then the complete chunks go round once more. With five ranks A..E, whose shares of chunk 0 are
// a0..e0, each row shows what a step brings to its receiver:
//
//     step     A                B                C                D                E
//       1      e3+a3            a4+b4            b0+c0            c1+d1            d2+e2
//       2      d2+e2+a2         e3+a3+b3         a4+b4+c4         b0+c0+d0         c1+d1+e1
//       3      c1+d1+e1+a1      d2+e2+a2+b2      e3+a3+b3+c3      a4+b4+c4+d4      b0+c0+d0+e0
//       4      sum 0            sum 1            sum 2            sum 3            sum 4         each is home
//     - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -
//       5      sum 4            sum 0            sum 1            sum 2            sum 3
//       6      sum 3            sum 4            sum 0            sum 1            sum 2
//       7      sum 2            sum 3            sum 4            sum 0            sum 1
//       8      sum 1            sum 2            sum 3            sum 4            sum 0         all have all
//
// Every rank sends 2(N-1) chunks of K/N bytes, the least that any algorithm can do, and only ever speaks to its neighbours.
//
// No step needs `stage`: a chunk's memory is overwritten only by the complete chunk, which cannot exist before the right
// neighbour has taken what was offered here. Partial sums on their way have no place in memory at all (no dest).
#include "plan/pieces.h"
#include "plan/planners.h"

namespace ringccl {

void ring_scatter_reduce(std::vector<Step>& steps, const Group& group, const std::vector<Chunk>& chunks, bool gather_follows) {
    const int n = group.size(), left = group.member(group.me - 1), right = group.member(group.me + 1);
    for (int s = 0; s < n; ++s) {
        const int c = group.wrap(group.me - 1 - s);
        const Chunk& chunk = chunks[c];
        Step step{.local = chunk.from, .count = chunk.count, .chunk = c};
        if (s > 0) step.sources = {left}, step.reduce = true;
        if (s < n - 1 || gather_follows) step.sinks = {right};
        if (s == n - 1) step.dest = chunk.to, step.finish = true;
        steps.push_back(step);
    }
}

void ring_all_gather(std::vector<Step>& steps, const Group& group, const std::vector<Chunk>& chunks, bool reduced) {
    const int n = group.size(), left = group.member(group.me - 1), right = group.member(group.me + 1);
    for (int s = reduced ? 1 : 0; s < n; ++s) {
        const int c = group.wrap(group.me - s);
        const Chunk& chunk = chunks[c];
        Step step{.dest = chunk.to, .count = chunk.count, .chunk = c};
        if (s == 0) step.local = chunk.from;
        if (s > 0) step.sources = {left};
        if (s < n - 1) step.sinks = {right};
        steps.push_back(step);
    }
}

namespace {

// Broadcast and reduce do not go round: they are a chain along the ring, from the root or to it, and slices keep it full.
Step chain_step(const Shape& shape, const Group& ring, Range range, int number) {
    const bool down = shape.kind == Kind::broadcast;
    const int root = down ? shape.root : ring.member([&] {
        int i = 0;
        while (ring.member(i) != shape.root) ++i;
        return i + 1;
    }());
    const bool first = ring.member(ring.me) == root, last = ring.member(ring.me + 1) == root;
    Step step{.count = range.count, .chunk = number};
    if (!first) step.sources = {ring.member(ring.me - 1)};
    if (!last) step.sinks = {ring.member(ring.me + 1)};
    if (first || !down) step.local = {Buffer::send, range.offset};
    if (last || down) step.dest = {Buffer::recv, range.offset};
    step.reduce = !down && !first;
    step.finish = !down && last;
    return step;
}

}  // namespace

Plan plan_ring(const Shape& shape, const World& world, int channels) {
    if (world.size == 1) return plan_alone(shape, world);
    const Group ring = ring_group(world);
    const bool chain = shape.kind == Kind::broadcast || shape.kind == Kind::reduce;
    Plan plan{.algorithm = "ring", .burst = 1};
    for (int c = 0; c < channels; ++c) {
        const Range range = part_of({0, shape.count}, channels, c, shape.type);
        Channel channel{.lane = c};
        if (chain) {
            channel.steps.push_back(chain_step(shape, ring, range, c));
        } else {
            const std::vector<Chunk> chunks = chunks_of(shape, ring, range);
            const bool reduces = shape.kind != Kind::all_gather, gathers = shape.kind != Kind::scatter_reduce;
            if (reduces) ring_scatter_reduce(channel.steps, ring, chunks, gathers);
            if (gathers) ring_all_gather(channel.steps, ring, chunks, reduces);
        }
        plan.channels.push_back(std::move(channel));
    }
    return plan;
}

}  // namespace ringccl
