#include "device/cuda/cuda_memory.h"

#include <sys/random.h>

#include <cstring>

#include "device/cuda/driver.h"

namespace ringccl::cuda {
namespace {

class CudaBlock final : public Block {
public:
    // `owned`: it is freed with the block. A block whose handle the runtime refuses can be shown within the process only.
    static Result<std::shared_ptr<Block>> make(int device, void* base, size_t bytes, bool owned) {
        std::shared_ptr<CudaBlock> block(new CudaBlock(device, owned));
        block->data_ = static_cast<std::byte*>(base);
        block->bytes_ = bytes;
        if (getrandom(&block->id_, sizeof block->id_, 0) != sizeof block->id_) return system_failure(errno, "getrandom");
        block->id_ |= 1;
        block->exported_ = cudaIpcGetMemHandle(&block->handle_, base) == cudaSuccess;
        if (!block->exported_) (void)cudaGetLastError();
        return std::shared_ptr<Block>(block);
    }
    ~CudaBlock() override {
        if (!owned_) return;
        const OnDevice here(device_);
        (void)cudaFree(data_);
    }

    DeviceName device_name() const override {
        DeviceName name{};
        static_assert(sizeof handle_ < sizeof name);
        name[0] = std::byte{exported_};
        std::memcpy(&name[1], &handle_, sizeof handle_);
        return name;
    }

private:
    CudaBlock(int device, bool owned) : device_(device), owned_(owned) {}

    const int device_;
    const bool owned_;
    bool exported_ = false;
    cudaIpcMemHandle_t handle_{};
};

}  // namespace

Result<std::shared_ptr<Block>> CudaMemory::create(size_t bytes) {
    const OnDevice here(device_);
    void* at = nullptr;
    RINGCCL_CUDA_TRY(device_, cudaMalloc(&at, bytes));
    return CudaBlock::make(device_, at, bytes, true);
}

Result<std::shared_ptr<Block>> CudaMemory::export_allocation(const void* at) {
    const OnDevice here(device_);
    void* base = nullptr;
    size_t bytes = 0;
    if (!Driver::of_process().allocation_of(at, &base, &bytes))
        return failure(ringInvalidArgument, "CUDA device {}: {} lies in no allocation that can be shown to other processes",
                       device_, at);
    return CudaBlock::make(device_, base, bytes, false);
}

Result<MappedBlock> CudaMemory::open(const Block::DeviceName& name, size_t bytes) {
    const OnDevice here(device_);
    if (name[0] == std::byte{0})
        return failure(ringUnhandledCudaError, "CUDA device {}: the peer's runtime gave it no handle to pass on", device_);
    cudaIpcMemHandle_t handle;
    std::memcpy(&handle, &name[1], sizeof handle);
    void* at = nullptr;
    RINGCCL_CUDA_TRY(device_, cudaIpcOpenMemHandle(&at, handle, cudaIpcMemLazyEnablePeerAccess));
    return MappedBlock(static_cast<std::byte*>(at), bytes, [device = device_, at] {
        const OnDevice here(device);
        (void)cudaIpcCloseMemHandle(at);
    });
}

Status CudaMemory::enable(int device) {
    const OnDevice here(device_);
    int can = 0;
    RINGCCL_CUDA_TRY(device_, cudaDeviceCanAccessPeer(&can, device_, device));
    if (can == 0) return failure(ringUnhandledCudaError, "CUDA device {} has no peer access to device {}", device_, device);
    const cudaError_t error = cudaDeviceEnablePeerAccess(device, 0);
    if (error != cudaErrorPeerAccessAlreadyEnabled) return checked(error, "cudaDeviceEnablePeerAccess", device_);
    (void)cudaGetLastError();
    return {};
}

Result<std::shared_ptr<void>> CudaMemory::reach(std::byte* at, size_t bytes, bool writable) {
    const OnDevice here(device_);
    int same_address = 0, read_only = 0;
    RINGCCL_CUDA_TRY(device_, cudaDeviceGetAttribute(&same_address, cudaDevAttrCanUseHostPointerForRegisteredMem, device_));
    RINGCCL_CUDA_TRY(device_, cudaDeviceGetAttribute(&read_only, cudaDevAttrHostRegisterReadOnlySupported, device_));
    if (same_address == 0)
        return failure(ringUnhandledCudaError, "CUDA device {} reaches host memory under other addresses only", device_);
    unsigned flags = cudaHostRegisterPortable | cudaHostRegisterMapped;
    if (!writable && read_only != 0) flags |= cudaHostRegisterReadOnly;
    RINGCCL_CUDA_TRY(device_, cudaHostRegister(at, bytes, flags));
    return std::shared_ptr<void>(at, [device = device_](void* registered) {
        const OnDevice here(device);
        (void)cudaHostUnregister(registered);
    });
}

Status CudaMemory::poke(std::byte* at, uint64_t word) {
    const OnDevice here(device_);
    RINGCCL_CUDA_TRY(device_, cudaMemcpyAsync(at, &word, sizeof word, cudaMemcpyDefault, stream_));
    RINGCCL_CUDA_TRY(device_, cudaStreamSynchronize(stream_));
    return {};
}

Result<uint64_t> CudaMemory::peek(const std::byte* at) {
    const OnDevice here(device_);
    uint64_t word = 0;
    RINGCCL_CUDA_TRY(device_, cudaMemcpyAsync(&word, at, sizeof word, cudaMemcpyDefault, stream_));
    RINGCCL_CUDA_TRY(device_, cudaStreamSynchronize(stream_));
    return word;
}

}  // namespace ringccl::cuda
