// The order of a caller's CUDA stream. Taking a ticket enqueues two things into the stream: a mark that tells when the stream
// has come to this work, and a wait that holds the stream until the work is done. Nothing else of the device is held:
// computation in other streams goes on.
#pragma once

#include <atomic>
#include <mutex>
#include <set>

#include "device/cuda/marker.h"
#include "device/order.h"

namespace ringccl::cuda {

class CudaOrder final : public Order {
public:
    static Result<std::shared_ptr<CudaOrder>> make(int device, cudaStream_t stream, uint64_t communicator);
    ~CudaOrder() override;

    // ringInvalidUsage: the stream is being captured into a graph, or holds work of another rank of the same communicator.
    Result<uint64_t> take_ticket() override;
    void await_turn(uint64_t ticket, const std::atomic<bool>& stop) override;
    void pass_turn(uint64_t ticket, const Status& outcome) override;

private:
    CudaOrder(int device, cudaStream_t stream, uint64_t communicator)
        : device_(device), stream_(stream), communicator_(communicator) {}
    bool stands_before(const CudaOrder& other) const;
    cudaError_t hold(uint32_t value);

    const int device_;
    const cudaStream_t stream_;
    const uint64_t communicator_;
    // A stream that is full makes who takes a ticket wait until work in it is done. Whoever says that it is done must not wait
    // for the same lock, nor anybody who only looks.
    std::mutex taking_;
    Marker begun_;  // tickets count from 1, as its marks do
    std::atomic<uint64_t> taken_{0};

    std::mutex passing_;
    Word done_;                        // the last ticket up to which all are done
    std::atomic<uint64_t> passed_{0};  // what done_ says
    std::set<uint64_t> early_;         // tickets beyond it that are done
};

}  // namespace ringccl::cuda
