// Where a rank's buffers lie and what its calls are ordered in: the host, or a CUDA device.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "perf/options.h"
#include "ringccl/ringccl.h"

namespace ringccl::perf {

// Belongs to the thread that made it. Everything throws std::runtime_error when it cannot be done.
class Place {
public:
    virtual ~Place() = default;

    virtual void configure(ringConfig_t& config) const = 0;
    // One line for the head of the table; empty on the host.
    virtual std::string name() const = 0;

    virtual std::byte* allocate(size_t bytes) = 0;
    virtual void release(std::byte* memory) = 0;
    // Whether CPUs reach that memory. If not, copy() goes between it and host memory, after all that the stream holds.
    virtual bool reached_by_cpus() const = 0;
    virtual void copy(void* to, const void* from, size_t bytes) = 0;

    // What the calls get: null, for calls that block, or a stream, which wait() waits for.
    virtual void* stream() const = 0;
    virtual void wait() = 0;
};

// `rank`: of those that share the devices of a host.
std::unique_ptr<Place> make_place(const Options& options, int rank);

}  // namespace ringccl::perf
