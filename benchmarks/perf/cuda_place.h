// A CUDA device, with a stream of the rank's own, which the default stream has no part in.
#pragma once

#include "perf/cuda_runtime.h"
#include "perf/place.h"

namespace ringccl::perf {

class CudaPlace final : public Place {
public:
    // `device` < 0: rank r is on device r modulo their number.
    CudaPlace(int rank, int device);

    void configure(ringConfig_t& config) const override;
    std::string name() const override;
    std::byte* allocate(size_t bytes) override;
    // Nothing is freed before the process ends: cudaFree waits for the whole device, where streams of other ranks may be
    // waiting for this one.
    void release(std::byte*) override {}
    bool reached_by_cpus() const override { return false; }
    void copy(void* to, const void* from, size_t bytes) override;
    void* stream() const override { return stream_; }
    void wait() override;

private:
    const CudaRuntime& runtime_;
    int device_;
    void* stream_ = nullptr;
};

}  // namespace ringccl::perf
