#include "device/cuda/cuda_order.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "device/cuda/call.h"
#include "device/cuda/driver.h"
#include "kernels/cuda/launch.h"

namespace ringccl::cuda {
namespace {

// A stream rings no doorbell. What is before this work may take long or a moment.
constexpr std::chrono::microseconds kPoll{100}, kNap{20}, kLongNap{100};

// The orders of this process. Never destroyed, since communicators may outlive other statics.
struct Living {
    std::mutex mutex;
    std::vector<CudaOrder*> orders;
};
Living& living() {
    static auto* table = new Living;
    return *table;
}

}  // namespace

Result<std::shared_ptr<CudaOrder>> CudaOrder::make(int device, cudaStream_t stream, uint64_t communicator) {
    std::shared_ptr<CudaOrder> order(new CudaOrder(device, stream, communicator));
    RINGCCL_ASSIGN(order->begun_, Marker::make(device));
    RINGCCL_ASSIGN(order->done_, Word::take(device));
    std::lock_guard lock(living().mutex);
    living().orders.push_back(order.get());
    return order;
}

// After a failure the stream may come to its marks and waits only now.
CudaOrder::~CudaOrder() {
    {
        std::lock_guard lock(living().mutex);
        std::erase(living().orders, this);
    }
    begun_.leave();
    done_.leave();
}

// Whether this one's work holds the stream that is the other's too, and needs the other's rank to end.
bool CudaOrder::stands_before(const CudaOrder& other) const {
    return &other != this && device_ == other.device_ && stream_ == other.stream_ && communicator_ == other.communicator_ &&
           stream_ != cudaStreamPerThread && passed_.load() != taken_.load();
}

Result<uint64_t> CudaOrder::take_ticket() {
    const OnDevice here(device_);
    {
        std::lock_guard lock(living().mutex);
        if (std::any_of(living().orders.begin(), living().orders.end(),
                        [this](CudaOrder* o) { return o->stands_before(*this); }))
            return failure(
                ringInvalidUsage,
                "two ranks of one communicator use one stream of CUDA device {}: the second would wait for the first, and "
                "the first for the second; give each rank a stream of its own (cudaStreamPerThread is one)",
                device_);
    }
    std::lock_guard lock(taking_);
    cudaStreamCaptureStatus capture;
    RINGCCL_CUDA_TRY(device_, cudaStreamIsCapturing(stream_, &capture));
    if (capture != cudaStreamCaptureStatusNone)
        return failure(ringInvalidUsage, "the stream is being captured into a graph, in which collectives cannot be recorded");
    RINGCCL_CUDA_TRY(device_, begun_.mark(stream_));
    const uint64_t ticket = begun_.last();
    taken_.store(ticket);
    const Status held = checked(hold(static_cast<uint32_t>(ticket)), "waiting for a word", device_);
    if (held.ok()) return ticket;
    pass_turn(ticket, held);
    return held;
}

cudaError_t CudaOrder::hold(uint32_t value) {
    const Driver& driver = Driver::of_process();
    return driver.has_stream_values() ? driver.wait(stream_, done_.address(), value)
                                      : launch_wait(done_.address(), value, stream_);
}

void CudaOrder::await_turn(uint64_t ticket, const std::atomic<bool>& stop) {
    const OnDevice here(device_);
    const auto since = std::chrono::steady_clock::now();
    while (!begun_.passed(ticket) && !stop.load(std::memory_order_acquire)) {
        const auto waited = std::chrono::steady_clock::now() - since;
        if (waited < kPoll)
            sched_yield();
        else
            std::this_thread::sleep_for(waited < 100 * kNap ? kNap : kLongNap);
    }
}

// What failed is told by the communicator: a stream has no place for it.
void CudaOrder::pass_turn(uint64_t ticket, const Status&) {
    std::lock_guard lock(passing_);
    early_.insert(ticket);
    while (early_.erase(passed_.load() + 1) != 0) passed_.fetch_add(1);
    done_.set(static_cast<uint32_t>(passed_.load()));
}

}  // namespace ringccl::cuda
