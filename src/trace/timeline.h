// A trace of what ranks do, for chrome://tracing or ui.perfetto.dev: per rank a row with its operations, one with its sleeps,
// and one for each link with its slices. Off unless RINGCCL_TIMELINE names a file; then every rank of every process of this
// host appends to it (trace_file.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/operation.h"
#include "base/status.h"
#include "trace/ticks.h"

namespace ringccl {

class Timeline {
public:
    using Ticks = ringccl::Ticks;
    static Ticks now() { return ticks(); }

    // `%r` in the file's name becomes the rank, so that each writes its own. ringSystemError: the file cannot be opened or
    // written; ringInvalidUsage: it is there and holds something else.
    static Result<std::unique_ptr<Timeline>> open(const std::string& file, const std::string& communicator, int rank, int size);
    virtual ~Timeline() = default;  // writes what has not been written

    // By the thread that runs the engine. Buffered; written in pieces of some 100 KiB, after a second when the rank sleeps or
    // has done an operation, and at the end. `algorithm` is a static string.
    virtual void operation(const Operation& operation, const char* algorithm, Ticks begin, Ticks end, ringResult_t result) = 0;
    // A slice offered to `peer` until it was taken, or awaited from it until released. Of one link in the order of the slices;
    // a slice that is queued behind others is drawn from the end of the one before it.
    virtual void sent(int peer, int lane, const Fingerprint& print, size_t bytes, Ticks begin, Ticks end) = 0;
    virtual void received(int peer, int lane, const Fingerprint& print, size_t bytes, Ticks begin, Ticks end) = 0;
    virtual void slept(Ticks begin, Ticks end) = 0;
};

}  // namespace ringccl
