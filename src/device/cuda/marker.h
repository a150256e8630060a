// Marks places in a stream and tells whether the stream has passed them, without a call of the runtime where the driver lets
// streams write words, else by events.
#pragma once

#include <cuda_runtime_api.h>

#include <deque>
#include <memory>
#include <mutex>

#include "device/cuda/words.h"

namespace ringccl::cuda {

class Marker {
public:
    static Result<Marker> make(int device);
    // Streams may come to marks when this is gone.
    void leave() { word_.leave(); }

    // Marks what the stream holds now. Numbers count from 1. Waits while the stream has no room; one thread may mark while
    // another asks.
    cudaError_t mark(cudaStream_t stream);
    uint64_t last() const { return last_; }
    // What the mark means is visible to the caller when this says yes.
    bool passed(uint64_t number);

private:
    cudaError_t record(cudaStream_t stream);

    // Where words cannot be written: the events of marks that have not been passed, and those that are free.
    struct Events {
        std::mutex mutex;
        std::deque<cudaEvent_t> open, free;
        ~Events();
    };

    Word word_;
    std::unique_ptr<Events> events_;
    uint64_t last_ = 0;    // of who marks
    uint64_t passed_ = 0;  // of who asks
};

}  // namespace ringccl::cuda
