// Marks places in a stream and tells whether the stream has passed them, without a call of the runtime where the driver lets
// streams write words, else by events.
#pragma once

#include <cuda_runtime_api.h>

#include <deque>

#include "device/cuda/words.h"

namespace ringccl::cuda {

class Marker {
public:
    static Result<Marker> make(int device);
    Marker() = default;
    Marker(Marker&&) = default;
    Marker& operator=(Marker&&) = default;
    ~Marker();

    // Streams may come to marks when this is gone.
    void leave() { word_.leave(); }

    // Marks what the stream holds now. Numbers count from 1.
    cudaError_t mark(cudaStream_t stream);
    uint64_t last() const { return last_; }
    // What the mark means is visible to the caller when this says yes.
    bool passed(uint64_t number);
    bool all_passed() { return passed_ == last_ || passed(last_); }

private:
    cudaError_t record(cudaStream_t stream);

    Word word_;
    // Where words cannot be written: the events of marks that have not been passed, and those that are free.
    std::deque<cudaEvent_t> open_;
    std::deque<cudaEvent_t> free_;
    uint64_t last_ = 0, passed_ = 0;
};

}  // namespace ringccl::cuda
