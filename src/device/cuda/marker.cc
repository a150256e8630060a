#include "device/cuda/marker.h"

#include "device/cuda/driver.h"

namespace ringccl::cuda {

Marker::Events::~Events() {
    for (cudaEvent_t event : open) cudaEventDestroy(event);
    for (cudaEvent_t event : free) cudaEventDestroy(event);
}

Result<Marker> Marker::make(int device) {
    Marker marker;
    RINGCCL_ASSIGN(marker.word_, Word::take(device));
    if (!Driver::of_process().has_stream_values()) marker.events_ = std::make_unique<Events>();
    return marker;
}

cudaError_t Marker::mark(cudaStream_t stream) {
    const auto value = static_cast<uint32_t>(last_ + 1);
    const cudaError_t error = events_ == nullptr ? Driver::of_process().write(stream, word_.address(), value) : record(stream);
    if (error == cudaSuccess) ++last_;
    return error;
}

// The lock is not held while the stream may have no room.
cudaError_t Marker::record(cudaStream_t stream) {
    cudaEvent_t event = nullptr;
    {
        std::lock_guard lock(events_->mutex);
        if (!events_->free.empty()) {
            event = events_->free.front();
            events_->free.pop_front();
        }
    }
    if (event == nullptr) {
        const cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        if (error != cudaSuccess) return error;
    }
    const cudaError_t error = cudaEventRecord(event, stream);
    std::lock_guard lock(events_->mutex);
    (error == cudaSuccess ? events_->open : events_->free).push_back(event);
    return error;
}

bool Marker::passed(uint64_t number) {
    if (number <= passed_) return true;
    if (events_ == nullptr) {
        if (!word_.reached(static_cast<uint32_t>(number))) return false;
        passed_ = number;
        return true;
    }
    std::lock_guard lock(events_->mutex);
    while (passed_ < number) {
        if (cudaEventQuery(events_->open.front()) != cudaSuccess) {
            (void)cudaGetLastError();
            return false;
        }
        events_->free.push_back(events_->open.front());
        events_->open.pop_front();
        ++passed_;
    }
    return true;
}

}  // namespace ringccl::cuda
