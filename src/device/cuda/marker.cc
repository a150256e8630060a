#include "device/cuda/marker.h"

#include "device/cuda/driver.h"

namespace ringccl::cuda {

Result<Marker> Marker::make(int device) {
    Marker marker;
    RINGCCL_ASSIGN(marker.word_, Word::take(device));
    return marker;
}

Marker::~Marker() {
    for (cudaEvent_t event : open_) cudaEventDestroy(event);
    for (cudaEvent_t event : free_) cudaEventDestroy(event);
}

cudaError_t Marker::mark(cudaStream_t stream) {
    const Driver& driver = Driver::of_process();
    const cudaError_t error =
        driver.has_stream_values() ? driver.write(stream, word_.address(), static_cast<uint32_t>(last_ + 1)) : record(stream);
    if (error == cudaSuccess) ++last_;
    return error;
}

cudaError_t Marker::record(cudaStream_t stream) {
    if (free_.empty()) {
        cudaEvent_t event;
        if (const cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming); error != cudaSuccess)
            return error;
        free_.push_back(event);
    }
    const cudaError_t error = cudaEventRecord(free_.front(), stream);
    if (error != cudaSuccess) return error;
    open_.push_back(free_.front());
    free_.pop_front();
    return error;
}

bool Marker::passed(uint64_t number) {
    if (number <= passed_) return true;
    if (Driver::of_process().has_stream_values()) {
        if (!word_.reached(static_cast<uint32_t>(number))) return false;
        passed_ = number;
        return true;
    }
    while (passed_ < number) {
        if (cudaEventQuery(open_.front()) != cudaSuccess) {
            (void)cudaGetLastError();
            return false;
        }
        free_.push_back(open_.front());
        open_.pop_front();
        ++passed_;
    }
    return true;
}

}  // namespace ringccl::cuda
