// The host, with buffers from the C++ heap or from ringMemAlloc, and calls that block or go into a stream.
#pragma once

#include "perf/place.h"

namespace ringccl::perf {

class HostPlace final : public Place {
public:
    HostPlace(bool ring_memory, bool stream);
    ~HostPlace() override;
    HostPlace(const HostPlace&) = delete;
    HostPlace& operator=(const HostPlace&) = delete;

    void configure(ringConfig_t&) const override {}
    std::string name() const override { return ""; }
    std::byte* allocate(size_t bytes) override;  // page-aligned
    void release(std::byte* memory) override;
    bool reached_by_cpus() const override { return true; }
    void copy(void* to, const void* from, size_t bytes) override;
    void* stream() const override { return stream_; }
    void wait() override;

private:
    bool ring_memory_;
    ringStream_t stream_ = nullptr;
};

}  // namespace ringccl::perf
