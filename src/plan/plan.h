// A plan: who sends which chunk when, and what is done with what arrives. Data, not control flow: it is printed, simulated and
// tested without a byte moving, and the engine carries it out in one loop whatever the algorithm.
//
// Per rank a plan is a few channels that advance independently; per channel a list of steps of one kind:
//
//     for every slice of the step: take the slice from each source rank, combine it with the local operand,
//     put the result into dest, offer it to each sink rank
//
// A step speaks of a whole chunk, however large. The engine walks the chunks of one phase side by side in windows (see
// engine/): window 0 of every step of the phase, then window 1 of every step, ... A window is a few slices, the most that a
// link holds without being emptied, so that a ring of full senders cannot lock up. Hence the two laws (tests/unit proves them):
//   1. within one channel and phase, two steps that touch the same local bytes touch exactly the same range;
//   2. for every pair of ranks and every lane, the steps that send from a to b and the steps in which b takes from a are, in
//      order, equally many, of equal count, in the same phase.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/operation.h"
#include "base/status.h"

namespace ringccl {

enum class Buffer : uint8_t { none, send, recv };  // of this rank's call

// Elements [offset, offset + the step's count) of a buffer.
struct Region {
    Buffer buffer = Buffer::none;
    size_t offset = 0;

    bool exists() const { return buffer != Buffer::none; }
    bool operator==(const Region&) const = default;
};

struct Step {
    std::vector<int> sources = {};  // ranks that the chunk is taken from, ascending
    std::vector<int> sinks = {};    // ranks that the result is offered to, ascending
    Region local = {};              // this rank's own operand, if any; Buffer::send is raw input, Buffer::recv a partial result
    Region dest = {};               // where the result is put, if anywhere
    size_t count = 0;               // elements; 0 still sends one empty slice to each sink, which carries the fingerprint
    uint8_t phase = 0;              // steps of a later phase start after all windows of the earlier ones
    bool reduce = false;            // combine the operands with the operation, in rank order; else there is exactly one: copy
    bool finish = false;            // the result is final: avg divides here
    bool stage = false;             // what is offered will be overwritten before the peer must have taken it: offer a copy
    int chunk = -1;                 // the chunk's number, for people
};

struct Channel {
    int lane = 0;  // the links that the steps use: 0 .. kLanes - 1
    std::vector<Step> steps = {};
};

// One rank's part. Every rank makes its own; all are slices of one global plan.
struct Plan {
    const char* algorithm = "";  // "ring"
    std::vector<Channel> channels = {};
    // How many chunks a rank may have to offer on one lane before the first of them is certain to be taken: 1 in a ring, N - 1
    // where everybody first sends to everybody. Equal on all ranks. The engine makes slices small enough that a window of each,
    // and one slice of the chunk after them, fit into its stage.
    int burst = 1;
};

// Collectives use lanes 0 .. kLanes - 2; point-to-point calls have the last one to themselves.
constexpr int kLanes = 5;
constexpr int kPeerLane = kLanes - 1;

// What a planner knows of the world. Equal on all ranks but for `rank`.
struct World {
    int rank = 0;
    int size = 1;
    std::vector<int> host;  // host number of each rank, numbered by first appearance; empty: one host
    std::vector<int> ring;  // ranks in ring order; empty: 0 .. size - 1
    bool visible = true;    // every pair of ranks on one host can show each other memory (p2p)
};

// What is to be planned: an operation without its buffers.
struct Shape {
    Kind kind = Kind::all_reduce;
    ringDataType_t type = ringFloat32;
    Op op = Op::sum;
    size_t count = 0;  // as in the call: allReduce elements, scatterReduce elements per rank, ...
    int root = 0;
    bool in_place = false;  // send == recv on this rank; others may differ, so it must not change what is sent or taken

    bool operator==(const Shape&) const = default;
};

}  // namespace ringccl
