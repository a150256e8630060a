// Memory of a CUDA device that other ranks are shown: within the process by its address, where the devices have peer access;
// between processes by the runtime's IPC handles.
#pragma once

#include "device/cuda/call.h"
#include "device/peer_memory.h"

namespace ringccl::cuda {

class CudaMemory final : public PeerMemory {
public:
    // `stream`: for poke() and peek(); it outlives this.
    CudaMemory(int device, cudaStream_t stream) : device_(device), stream_(stream) {}

    int device() const override { return device_; }
    Result<std::shared_ptr<Block>> create(size_t bytes) override;
    Result<std::shared_ptr<Block>> export_allocation(const void* at) override;
    Result<MappedBlock> open(const Block::DeviceName& name, size_t bytes) override;
    Status enable(int device) override;
    Result<std::shared_ptr<void>> reach(std::byte* at, size_t bytes, bool writable) override;
    Status poke(std::byte* at, uint64_t word) override;
    Result<uint64_t> peek(const std::byte* at) override;

private:
    const int device_;
    const cudaStream_t stream_;
};

}  // namespace ringccl::cuda
