// What the ranks do, over and over, until the fault ends it.
#pragma once

#include <vector>

#include "faults/fault.h"

namespace ringccl::faults {

class Worker {
public:
    Worker(ringComm_t comm, int rank, int size, Work work);
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    // Piece number `index` of the work:
    //   mix     an allReduce, 1 KiB and 4 MiB in turn
    //   pairs   ranks 2i and 2i + 1 send a message to each other, one after the other; no pair knows of the next
    //   group   an allReduce of 4 MiB, and a message to the right neighbour, in one group
    //   stream  four allReduces enqueued, and the wait for them
    ringResult_t once(int index);
    // The same place in the order of calls, but not the same call as the others'.
    ringResult_t deviate(int index, Deed how);

    // Some call succeeded but its result was not the sum of what the ranks gave.
    bool wrong() const { return wrong_; }

private:
    size_t count(int index) const;
    ringResult_t all_reduce(size_t count, void* stream);
    ringResult_t pairs();
    ringResult_t group();
    ringResult_t streamed();
    void check(size_t count);

    ringComm_t comm_;
    int rank_, size_;
    Work work_;
    ringStream_t stream_ = nullptr;
    std::vector<float> send_, recv_, gift_, taken_;
    bool wrong_ = false;
};

}  // namespace ringccl::faults
