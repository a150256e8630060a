// What a runner works from: a step of a plan with its links, the arithmetic of the operation, and the operation's buffers.
#pragma once

#include <cstddef>
#include <vector>

#include "device/device.h"
#include "plan/plan.h"
#include "trace/flight_recorder.h"
#include "transports/transport.h"

namespace ringccl {

// The kernels of one operation.
struct Arithmetic {
    size_t element = 1;  // bytes
    Kernel combine;      // a step that reduces
    Kernel finish;       // the same where the result is final
    Kernel scale;        // premul: what an input goes through first
};

// An operation with its buffers as the engine sees them.
struct Binding {
    const Operation* operation = nullptr;
    int rank = 0;  // this one
    const std::byte* send = nullptr;
    std::byte* recv = nullptr;
    const Block* send_block = nullptr;  // the block that holds the buffer, or null
    const Block* recv_block = nullptr;
    Scale scale;
};

struct BoundStep {
    std::vector<RecvLink*> sources;
    std::vector<int> source_ranks;
    std::vector<FlightRecorder::Progress*> source_progress;
    std::vector<SendLink*> sinks;
    std::vector<FlightRecorder::Progress*> sink_progress;
    std::vector<size_t> holds;   // for each sink, its place in Runner::holds_
    size_t inline_bytes = 0;     // the largest slice that every sink's link copies
    bool lands = false;          // some source delivers into the landing that it was lent
    bool land_in_place = false;  // the landing may be where the result is put
    bool through_host = false;   // some sink cannot be shown memory of this rank's device
    bool past_caches = false;    // so goes the result
    bool fetch = false;          // what is offered goes to one peer, which copies it as it is and not past the caches
    size_t local_place = 0;      // of the local operand among the operands, in rank order
    size_t count = 0;            // elements
    size_t slice = 1;            // elements
    size_t windows = 1;          // filled by the runner
    Region local, dest;
    int phase = 0;
    bool reduce = false, finish = false, stage = false;
};

}  // namespace ringccl
