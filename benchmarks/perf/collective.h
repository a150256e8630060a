// One collective as the tools see it: how its buffers are laid out, what must arrive where, how it is called and what its
// bandwidth means. Everything else in the tools is common to all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ringccl/ringccl.h"

namespace ringccl::perf {

// Who takes part, and what is moved. Counts are in elements, as in the C call.
struct Job {
    int rank = 0;
    int world = 1;
    int root = 0;
    size_t count = 0;
};

struct Layout {
    size_t send = 0;  // elements in this rank's send buffer; 0: it has none and passes NULL
    size_t recv = 0;
    // In place, where in the one shared buffer (the larger of the two) each begins. Unset: no such form.
    struct InPlace {
        size_t send = 0, recv = 0;
    };
    std::optional<InPlace> in_place;
};

// A run of received elements: what `source` sent from its index `first` on; or, with kReduced, the reduction of what all sent.
constexpr int kReduced = -1;
struct Segment {
    size_t at = 0;  // in the receive buffer
    size_t count = 0;
    int source = kReduced;
    uint64_t first = 0;
};

struct Call {
    const void* send;
    void* recv;
    Job job;
    ringDataType_t type;
    ringRedOp_t op;
    ringComm_t comm;
    void* stream;
};

struct Collective {
    const char* program;  // "allreduce_perf"
    const char* name;     // "allReduce"
    bool reduces;         // has an operation
    bool rooted;          // has a root
    bool divided;         // the size of a message is shared out: count is size / world
    Layout (*layout)(const Job&);
    std::vector<Segment> (*expected)(const Job&);
    ringResult_t (*run)(const Call&);
    // Bus bandwidth over algorithm bandwidth: what makes the number comparable with a link's speed whatever the world size.
    double (*bus_factor)(int world);
    // The least that the busiest rank must send in a bandwidth-optimal algorithm, as a multiple of the message size.
    double (*sent_factor)(int world);

    size_t count_for(size_t bytes, size_t element, int world) const;
    size_t bytes_of(size_t count, size_t element, int world) const { return count * element * (divided ? world : 1); }
};

std::span<const Collective> collectives();
const Collective* find_collective(std::string_view program);  // nullptr: no such program

}  // namespace ringccl::perf
