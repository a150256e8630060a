// One CUDA device as a communicator uses it: a stream per lane, beside the caller's; reductions by kernels and copies by the
// copy engines. Lanes' streams have the highest priority, which also keeps them off the hardware queues of the caller's
// streams, where they could stand behind a stream that waits for them. Nothing here waits for the whole device.
#pragma once

#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "device/cuda/cuda_memory.h"
#include "device/cuda/cuda_order.h"
#include "device/cuda/marker.h"
#include "device/device.h"
#include "plan/plan.h"

namespace ringccl::cuda {

class CudaDevice final : public Device {
public:
    static Result<std::shared_ptr<Device>> open(int index);
    ~CudaDevice() override;

    size_t depth() const override { return kDepth; }
    PeerMemory* peer_memory() override { return &*memory_; }
    void join(uint64_t communicator) override { communicator_ = communicator; }
    Status check_buffer(const char* caller, const char* what, const void* at) override;
    Result<std::shared_ptr<Order>> order(void* stream) override;

    void reduce(int lane, const Kernel& kernel, void* dst, const void* const* src, int k, size_t count, const Scale& scale,
                bool past_caches) override;
    void copy(int lane, void* dst, const void* src, size_t bytes, bool past_caches) override;
    Ticket mark(int lane) override;
    bool done(int lane, Ticket ticket) override;
    bool busy() const override { return open_marks_ != 0; }
    std::byte* scratch(int lane, size_t bytes, bool landing) override;
    const Status& status() const override { return status_; }
    void drain() override;

private:
    // Enough for a window that is reduced while the next one lands.
    static constexpr size_t kDepth = 8;

    struct Scratch {
        void* memory = nullptr;
        size_t bytes = 0;
    };
    struct Lane {
        cudaStream_t stream = nullptr;
        Marker marks;
        uint64_t seen = 0;       // marks that are known to have passed
        unsigned looks = 0;      // in vain, since the last mark that passed
        Scratch work, landings;  // on the device; on the host
    };

    explicit CudaDevice(int index) : index_(index) {}
    Status prepare();
    void note(cudaError_t error, const char* call);

    const int index_;
    uint64_t communicator_ = 0;
    int max_blocks_ = 1;
    Lane lanes_[kLanes];
    std::optional<CudaMemory> memory_;
    uint64_t open_marks_ = 0;
    std::vector<void*> outgrown_;  // landings that were replaced by larger ones
    std::mutex orders_mutex_;
    std::map<std::pair<cudaStream_t, std::thread::id>, std::shared_ptr<CudaOrder>> orders_;
    Status status_;
};

}  // namespace ringccl::cuda
