#include "engine/program.h"

#include <algorithm>

namespace ringccl {
namespace {

// Bytes of a slice on every rank alike: as large as the stage allows for this plan's burst, small enough that a chunk is at
// least two slices (one travels while the other is combined), but not so small that headers and wake-ups weigh.
size_t slice_elements(size_t count, size_t element, size_t slice_bytes, size_t stage_bytes, int burst) {
    constexpr size_t kWorthSplitting = size_t{64} << 10;
    const size_t room = stage_bytes / (kWindowSlices * (static_cast<size_t>(burst) + 1) + 1);
    size_t bytes = std::min(slice_bytes, room);
    // In a world of thousands even the stage's smallest place is too much; what fits inside a message needs no place there.
    constexpr size_t kInside = 64;
    bytes = bytes >= 4096 ? bytes / 4096 * 4096 : bytes >= Stage::kAlign ? bytes / Stage::kAlign * Stage::kAlign : kInside;
    const size_t chunk_bytes = count > SIZE_MAX / element ? SIZE_MAX : count * element;
    if (chunk_bytes / 2 < bytes) bytes = std::min(bytes, std::max(kWorthSplitting, (chunk_bytes / 2 + 4095) / 4096 * 4096));
    return std::max<size_t>(1, bytes / element);
}

// What one rank puts into its own buffers.
size_t result_bytes(const Plan& plan, size_t element) {
    size_t count = 0;
    for (const Channel& channel : plan.channels)
        for (const Step& step : channel.steps)
            if (step.dest.exists()) count += step.count;
    return count * element;
}

Arithmetic arithmetic_of(const Shape& shape) {
    Arithmetic a;
    a.element = type_size(shape.type);
    if (shape.op == Op::none) return a;
    const Op base = shape.op == Op::avg || shape.op == Op::premul ? Op::sum : shape.op;
    a.combine = {shape.type, base};
    a.finish = {shape.type, shape.op == Op::avg ? Op::avg : base};
    if (shape.op == Op::premul) a.scale = {shape.type, Op::premul};
    return a;
}

}  // namespace

Result<std::unique_ptr<Program>> Program::make(const Plan& plan, const Shape& shape, const World& world, int lane_shift,
                                               const Sizes& sizes, Device& device, const Wiring& wiring,
                                               const Wiring::Cause& cause) {
    auto program = std::make_unique<Program>();
    program->algorithm_ = plan.algorithm;
    program->arithmetic_ = arithmetic_of(shape);
    const bool pair = shape.kind == Kind::send || shape.kind == Kind::recv;
    const size_t element = program->arithmetic_.element;
    const bool stream = result_bytes(plan, element) >= sizes.stream_from;

    for (const Channel& channel : plan.channels) {
        const int lane = pair ? kPeerLane : (channel.lane + lane_shift) % kPeerLane;
        std::vector<int> peers;
        for (const Step& step : channel.steps) {
            peers.insert(peers.end(), step.sources.begin(), step.sources.end());
            peers.insert(peers.end(), step.sinks.begin(), step.sinks.end());
        }
        std::sort(peers.begin(), peers.end());
        peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
        RINGCCL_TRY(wiring.connect(peers, lane, cause));

        std::vector<Runner::Sink> sinks;
        std::vector<BoundStep> steps;
        for (const Step& step : channel.steps) {
            BoundStep bound;
            bound.source_ranks = step.sources;
            bound.count = step.count;
            bound.local = step.local;
            bound.dest = step.dest;
            bound.phase = step.phase;
            bound.reduce = step.reduce;
            bound.finish = step.finish;
            bound.stage = step.stage;
            for (int source : step.sources) {
                bound.sources.push_back(&wiring.receiver(source, lane));
                bound.source_progress.push_back(&wiring.progress(source));
                bound.lands |= wiring.capabilities(source).lands;
                if (source < world.rank) ++bound.local_place;
            }
            bound.past_caches = stream && step.sinks.empty();
            bound.land_in_place = device.peer_memory() == nullptr;
            // Not what a sum has just left in the caches: that is copied to the stage faster than the kernel pins pages. Nor
            // what goes past them, which the kernel's copy does not.
            const bool large = stream || step.count >= sizes.stream_from / element;
            bound.fetch = shape.op == Op::none && step.sinks.size() == 1 && !large;
            bound.inline_bytes = step.sinks.empty() ? 0 : SIZE_MAX;
            for (int sink : step.sinks) {
                SendLink* link = &wiring.sender(sink, lane);
                bound.sinks.push_back(link);
                bound.sink_progress.push_back(&wiring.progress(sink));
                const Capabilities can = wiring.capabilities(sink);
                bound.inline_bytes = std::min(bound.inline_bytes, can.inline_bytes);
                bound.through_host |= can.host_only && device.peer_memory() != nullptr;
                auto known = std::find_if(sinks.begin(), sinks.end(), [&](const Runner::Sink& s) { return s.rank == sink; });
                bound.holds.push_back(static_cast<size_t>(known - sinks.begin()));
                if (known == sinks.end()) sinks.push_back({sink, link});
            }
            bound.slice = slice_elements(step.count, element, sizes.slice, sizes.stage, plan.burst);
            const size_t largest = std::min(bound.slice, bound.count) * element;
            program->shows_memory_ |= !bound.sinks.empty() && largest > bound.inline_bytes;
            steps.push_back(std::move(bound));
        }
        program->runners_.emplace_back(std::move(steps), std::move(sinks), lane, program->arithmetic_, device);
        // Point-to-point calls to different peers, or in different directions, do not wait for each other.
        const uint64_t claim = pair
                                   ? (uint64_t{1} << 40) + static_cast<uint64_t>(peers.front()) * 2 + (shape.kind == Kind::recv)
                                   : static_cast<uint64_t>(lane);
        if (std::find(program->claims_.begin(), program->claims_.end(), claim) == program->claims_.end())
            program->claims_.push_back(claim);
    }
    return program;
}

}  // namespace ringccl
