// Carries out plans without data: an element of a buffer is a token that says whose contributions it holds. The rules are those
// of the engine: windows, slices, links that hold a few slices, a stage that is freed in order. What is shown instead of staged
// is read only when the peer takes it, which is as late as a link may.
#pragma once

#include <climits>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "plan/planners.h"

namespace ringccl {

// One collective as all ranks see it.
struct Scene {
    Shape shape;
    World world;  // of rank 0
    std::vector<Plan> plans;
};

struct Limits {
    std::function<size_t(size_t count)> slice = [](size_t count) { return count + 1; };  // elements, for a step of `count`
    size_t window = 4;                                                                   // slices
    size_t depth = SIZE_MAX;                                                             // slices that a link holds
    bool bounded_stage = false;                                                          // window * burst + 1 slices per lane
    bool stage_everything = false;
};

// Which channel moves next: the order in which they are asked for a slice, and whether to start over as soon as one has moved.
struct Schedule {
    std::function<void(std::vector<size_t>& order)> arrange;
    bool one_at_a_time = false;
};
Schedule in_order();
Schedule at_random(unsigned seed);
Schedule with_last(size_t rank, size_t size);  // this rank moves only when no other can; for plans of one channel

// Empty if every rank ends with what the API promises; else what went wrong first.
std::string simulate(const Scene& scene, const Limits& limits = {}, Schedule schedule = in_order());

// The two laws of plan/plan.h, lanes, order of sources and sinks, regions within the buffers. Empty if all hold.
std::string broken_law(const Scene& scene);

// The same scene with every range between neighbouring cuts shrunk to one element: plans of any size can be simulated.
Scene shrunk(const Scene& scene);

// Where a rank's buffers lie in one imagined memory.
struct Buffers {
    size_t send_at = 0, send_size = 0, recv_at = 0, recv_size = 0;

    size_t size() const { return std::max(send_at + send_size, recv_at + recv_size); }
    size_t at(const Region& region) const { return (region.buffer == Buffer::send ? send_at : recv_at) + region.offset; }
};
Buffers buffers_of(const Shape& shape, int size, int rank);

}  // namespace ringccl
