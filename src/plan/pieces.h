// What the planners share: how elements are cut into chunks, and the pieces that larger plans are put together from.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace ringccl {

struct Range {
    size_t offset = 0;
    size_t count = 0;
};

// Part `index` of `parts` nearly equal ones. Where parts are large the cuts fall on multiples of 64 bytes, so that no two ranks
// write one cache line and vector code stays aligned. A pure function of its arguments: every rank cuts alike.
Range part_of(Range whole, int parts, int index, ringDataType_t type);

// One chunk of a collective: where a rank's own operand is and where the result belongs, in this rank's buffers.
struct Chunk {
    size_t count = 0;
    Region from;
    Region to;
};

// The ranks that work together on a sequence of chunks, one chunk per member; chunk i ends up with, or begins at, member i.
struct Group {
    std::vector<int> members;
    int me = 0;  // index of this rank in members

    int size() const { return static_cast<int>(members.size()); }
    int member(int i) const { return members[wrap(i)]; }
    int wrap(int i) const { return ((i % size()) + size()) % size(); }
    std::vector<int> others() const;  // ascending
};
Group ring_group(const World& world);  // in ring order
Group rank_group(const World& world);  // in rank order

// Chunks of allReduce (and reduce), scatterReduce or allGather; of each rank's block only `range` is spoken of.
std::vector<Chunk> chunks_of(const Shape& shape, const Group& group, Range range);

// The two halves of the classic ring, appended to `steps`. With `gather_follows` the last combine also sends its chunk on,
// which is the first step of the second half; that is then called with `reduced`.
void ring_scatter_reduce(std::vector<Step>& steps, const Group& group, const std::vector<Chunk>& chunks, bool gather_follows);
void ring_all_gather(std::vector<Step>& steps, const Group& group, const std::vector<Chunk>& chunks, bool reduced);

// The same two halves with every member talking to every other at once. Member i's combine sees all inputs of chunk i, in rank
// order. `sinks` are those who want the finished chunk.
void direct_scatter_reduce(std::vector<Step>& steps, const Group& group, const std::vector<Chunk>& chunks,
                           std::vector<int> sinks);
void direct_all_gather(std::vector<Step>& steps, const Group& group, const std::vector<Chunk>& chunks, bool reduced);

// A rank's neighbours in a spanning tree.
struct Tree {
    int parent = -1;                 // -1 at the root
    std::vector<int> children = {};  // ascending
};
// Up the tree, down the tree, or up and down. Kinds: reduce, broadcast, all_reduce, barrier.
std::vector<Step> tree_steps(const Shape& shape, const Tree& tree);

// A barrier is an allReduce of nothing: the empty slices that carry the fingerprint are all there is.
Plan barrier_of(Plan plan);

// Integer averages are summed wide, so no partial sum may travel: one combine must see all inputs.
bool needs_all_inputs(const Shape& shape);

}  // namespace ringccl
