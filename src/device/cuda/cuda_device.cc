#include "device/cuda/cuda_device.h"

#include <algorithm>
#include <bit>

#include "device/cuda/driver.h"
#include "kernels/cuda/launch.h"

namespace ringccl::cuda {
namespace {

// Blocks of a reduction per multiprocessor: what fills the memory system and leaves room for computation beside it.
constexpr int kBlocksPerMultiprocessor = 2;
// Looks for a mark in vain before the stream is asked whether it has failed: then the mark never comes.
constexpr unsigned kLooksPerQuery = 64;

}  // namespace

Result<std::shared_ptr<Device>> CudaDevice::open(int index) {
    const OnDevice here(index);
    std::shared_ptr<CudaDevice> device(new CudaDevice(index));
    RINGCCL_TRY(device->prepare());
    return std::shared_ptr<Device>(device);
}

Status CudaDevice::prepare() {
    int least = 0, greatest = 0, multiprocessors = 0;
    RINGCCL_CUDA_TRY(index_, cudaDeviceGetStreamPriorityRange(&least, &greatest));
    RINGCCL_CUDA_TRY(index_, cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, index_));
    max_blocks_ = std::max(1, kBlocksPerMultiprocessor * multiprocessors);
    for (Lane& lane : lanes_) {
        RINGCCL_CUDA_TRY(index_, cudaStreamCreateWithPriority(&lane.stream, cudaStreamNonBlocking, greatest));
        RINGCCL_ASSIGN(lane.marks, Marker::make(index_));
    }
    memory_.emplace(index_, lanes_[0].stream);
    return {};
}

CudaDevice::~CudaDevice() {
    const OnDevice here(index_);
    drain();
    for (Lane& lane : lanes_) {
        if (lane.work.memory != nullptr) (void)cudaFreeAsync(lane.work.memory, lane.stream);
        if (lane.landings.memory != nullptr) outgrown_.push_back(lane.landings.memory);
        if (lane.stream != nullptr) (void)cudaStreamDestroy(lane.stream);
    }
    for (void* memory : outgrown_) (void)cudaFreeHost(memory);
    (void)cudaGetLastError();
}

void CudaDevice::note(cudaError_t error, const char* call) {
    if (error != cudaSuccess && status_.ok()) status_ = checked(error, call, index_);
}

Status CudaDevice::check_buffer(const char* caller, const char* what, const void* at) {
    const OnDevice here(index_);
    cudaPointerAttributes attributes{};
    RINGCCL_CUDA_TRY(index_, cudaPointerGetAttributes(&attributes, at));
    switch (attributes.type) {
        case cudaMemoryTypeHost:
        case cudaMemoryTypeManaged:
            return {};
        case cudaMemoryTypeDevice:
            if (attributes.device == index_) return {};
            return failure(ringInvalidArgument,
                           "{}: the {} buffer {} lies on CUDA device {}, but the communicator is on device {}", caller, what,
                           at, attributes.device, index_);
        default:
            return failure(
                ringInvalidArgument,
                "{}: the {} buffer {} is ordinary host memory, which CUDA device {} does not reach; use memory of the "
                "device, or host memory from cudaHostAlloc or cudaHostRegister",
                caller, what, at, index_);
    }
}

// Two names of the default stream are one stream, and the one name of the threads' default streams is as many as there are
// threads.
Result<std::shared_ptr<Order>> CudaDevice::order(void* handle) {
    auto* const stream = handle == cudaStreamLegacy ? nullptr : static_cast<cudaStream_t>(handle);
    const auto thread = stream == cudaStreamPerThread ? std::this_thread::get_id() : std::thread::id();
    std::lock_guard lock(orders_mutex_);
    auto& order = orders_[{stream, thread}];
    if (order == nullptr) {
        RINGCCL_ASSIGN(order, CudaOrder::make(index_, stream, communicator_));
    }
    return std::shared_ptr<Order>(order);
}

void CudaDevice::reduce(int lane, const Kernel& kernel, void* dst, const void* const* src, int k, size_t count,
                        const Scale& scale, bool) {
    const OnDevice here(index_);
    note(launch_reduce(kernel.type, kernel.op, dst, src, k, count, scale, max_blocks_, lanes_[lane].stream),
         "launching a reduction");
}

void CudaDevice::copy(int lane, void* dst, const void* src, size_t bytes, bool) {
    if (bytes == 0 || dst == src) return;
    const OnDevice here(index_);
    note(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, lanes_[lane].stream), "cudaMemcpyAsync");
}

Device::Ticket CudaDevice::mark(int number) {
    const OnDevice here(index_);
    Lane& lane = lanes_[number];
    const cudaError_t error = lane.marks.mark(lane.stream);
    note(error, "marking a place in a stream");
    if (error != cudaSuccess) return lane.marks.last() + 1;  // never done
    ++open_marks_;
    return lane.marks.last();
}

bool CudaDevice::done(int number, Ticket ticket) {
    Lane& lane = lanes_[number];
    if (ticket <= lane.seen) return true;
    const OnDevice here(index_);
    if (!status_.ok()) return false;
    if (lane.marks.passed(ticket)) {
        open_marks_ -= ticket - lane.seen;
        lane.seen = ticket;
        lane.looks = 0;
        return true;
    }
    if (++lane.looks % kLooksPerQuery == 0) {
        const cudaError_t error = cudaStreamQuery(lane.stream);
        if (error == cudaErrorNotReady)
            (void)cudaGetLastError();
        else
            note(error, "the work of a stream");
    }
    return false;
}

// Memory of the device comes from its pool and goes back in stream order. That of the host would be freed only when all of the
// device has stood still, so it stays until the end; as each piece is twice as large as the one before, they are few.
std::byte* CudaDevice::scratch(int number, size_t bytes, bool landing) {
    Lane& lane = lanes_[number];
    Scratch& scratch = landing ? lane.landings : lane.work;
    if (scratch.bytes >= bytes) return static_cast<std::byte*>(scratch.memory);
    const OnDevice here(index_);
    const size_t size = std::bit_ceil(bytes);
    void* fresh = nullptr;
    const cudaError_t error = landing ? cudaHostAlloc(&fresh, size, cudaHostAllocPortable | cudaHostAllocMapped)
                                      : cudaMallocAsync(&fresh, size, lane.stream);
    note(error, landing ? "cudaHostAlloc of landings" : "cudaMallocAsync");
    if (error != cudaSuccess) return nullptr;
    if (scratch.memory != nullptr && landing) outgrown_.push_back(scratch.memory);
    if (scratch.memory != nullptr && !landing) note(cudaFreeAsync(scratch.memory, lane.stream), "cudaFreeAsync");
    scratch = {fresh, size};
    return static_cast<std::byte*>(fresh);
}

void CudaDevice::drain() {
    const OnDevice here(index_);
    for (Lane& lane : lanes_)
        if (lane.stream != nullptr) note(cudaStreamSynchronize(lane.stream), "cudaStreamSynchronize");
}

}  // namespace ringccl::cuda
