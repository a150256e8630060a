// A plan made ready to run: ranks resolved to links, the operation to kernels, chunks to slices. Made once per shape and kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/runner.h"
#include "plan/planners.h"
#include "transports/transport.h"

namespace ringccl {

// How the links of a plan are found.
struct Wiring {
    // The operation that is the first to want links.
    struct Cause {
        std::optional<uint64_t> sequence;  // if it is a collective
        uint64_t record = 0;               // in the flight recorder
    };
    std::function<Status(const std::vector<int>& peers, int lane, const Cause& cause)> connect;
    std::function<SendLink&(int peer, int lane)> sender;
    std::function<RecvLink&(int peer, int lane)> receiver;
    std::function<Capabilities(int peer)> capabilities;
    std::function<FlightRecorder::Progress&(int peer)> progress;  // where its slices are counted
};

// How plans are cut, and from when on their bytes go another way.
struct Sizes {
    size_t slice;        // the largest
    size_t stage;        // of one lane
    size_t stream_from;  // results of this size and more bypass the caches
};

class Program {
public:
    // `lane_shift` moves the plan to other lanes, so that operations of a group run beside each other. `sequence` is that of
    // the operation which is the first to want it.
    static Result<std::unique_ptr<Program>> make(const Plan& plan, const Shape& shape, const World& world, int lane_shift,
                                                 const Sizes& sizes, Device& device, const Wiring& wiring,
                                                 const Wiring::Cause& cause);

    std::vector<Runner>& runners() { return runners_; }
    // What the program has to itself while it runs: lanes for a collective, one direction to one peer for point to point.
    const std::vector<uint64_t>& claims() const { return claims_; }
    const char* algorithm() const { return algorithm_; }
    // Whether peers are shown memory, so that it matters which block a buffer lies in; not if all fits inside messages.
    bool shows_memory() const { return shows_memory_; }

private:
    const char* algorithm_ = "";
    Arithmetic arithmetic_;
    std::vector<Runner> runners_;
    std::vector<uint64_t> claims_;
    bool shows_memory_ = false;
};

}  // namespace ringccl
