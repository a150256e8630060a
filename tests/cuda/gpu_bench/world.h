// Ranks of one world on device 0, each in a thread of its own with a stream of its own.
#pragma once

#include <functional>

#include "measure.h"

namespace ringccl::gpu_bench {

class Member {
public:
    Member(int rank, int ranks, const ringUniqueId& id, void* send, void* recv);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    int rank() const { return rank_; }
    void all_reduce(size_t bytes);  // enqueued
    void finish();                  // all that was enqueued
    void barrier();                 // of all ranks' threads
    // Wall-clock seconds of each of `calls` allReduces that follow each other, as this rank sees them.
    double seconds(size_t bytes, int calls);

private:
    int rank_;
    ringComm_t comm_ = nullptr;
    cudaStream_t stream_ = nullptr;
    void *send_, *recv_;
};

// Messages are of up to `bytes`. Returns when all bodies have; what one throws ends the program, for the others may be waiting
// for it.
void run_world(int ranks, size_t bytes, const std::function<void(Member&)>& body);

double now();

}  // namespace ringccl::gpu_bench
