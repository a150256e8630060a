// How ranks whose buffers lie on devices show each other memory, beside what CPUs can do.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "device/shared_block.h"

namespace ringccl {

class PeerMemory {
public:
    virtual ~PeerMemory() = default;

    // The number that the process gives to the device.
    virtual int device() const = 0;

    // `bytes` of new device memory that other processes can open by its device_name().
    virtual Result<std::shared_ptr<Block>> create(size_t bytes) = 0;
    // The allocation of the caller's that holds `at`, under the same conditions. It must outlive the block.
    virtual Result<std::shared_ptr<Block>> export_allocation(const void* at) = 0;
    // A block of another process.
    virtual Result<MappedBlock> open(const Block::DeviceName& name, size_t bytes) = 0;
    // Lets this device read memory of another device of this process.
    virtual Status enable(int device) = 0;
    // Lets this device reach host memory, until the lease is destroyed; the memory must outlive it.
    virtual Result<std::shared_ptr<void>> reach(std::byte* at, size_t bytes, bool writable) = 0;

    // One word of device memory, for probing. They wait for this device's own transfers only.
    virtual Status poke(std::byte* at, uint64_t word) = 0;
    virtual Result<uint64_t> peek(const std::byte* at) = 0;
};

}  // namespace ringccl
