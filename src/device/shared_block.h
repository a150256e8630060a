// A block of memory that other processes of the host can be shown: a sealed memfd, never a name in /dev/shm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/fd.h"
#include "base/status.h"

namespace ringccl {

class SharedBlock {
public:
    // `bytes` of zeroed memory, rounded up to whole pages.
    static Result<std::shared_ptr<SharedBlock>> create(const char* label, size_t bytes);
    // The block of this process with that id, or null: how ranks of one process find each other's.
    static std::shared_ptr<SharedBlock> find(uint64_t id);
    ~SharedBlock();
    SharedBlock(const SharedBlock&) = delete;
    SharedBlock& operator=(const SharedBlock&) = delete;

    // Gives the pages back to the system although peers may still have them mapped: only when nobody will read them again.
    // Merely destroying a block leaves to peers what they have mapped.
    void discard();

    std::byte* data() const { return data_; }
    size_t bytes() const { return bytes_; }
    int fd() const { return fd_.get(); }
    uint64_t id() const { return id_; }  // random, never 0: names the block to peers
    bool contains(const void* at, size_t bytes) const {
        auto* begin = static_cast<const std::byte*>(at);
        return begin >= data_ && begin + bytes <= data_ + bytes_;
    }

private:
    SharedBlock() = default;

    Fd fd_;
    std::byte* data_ = nullptr;
    size_t bytes_ = 0;
    uint64_t id_ = 0;
};

// A peer's block as seen from here, mapped read-only or, for doorbells, writable.
class MappedBlock {
public:
    static Result<MappedBlock> map(int fd, size_t bytes, bool writable);
    MappedBlock() = default;
    MappedBlock(MappedBlock&& other) noexcept;
    MappedBlock& operator=(MappedBlock&& other) noexcept;
    ~MappedBlock();

    std::byte* data() const { return data_; }
    size_t bytes() const { return bytes_; }

private:
    std::byte* data_ = nullptr;
    size_t bytes_ = 0;
};

}  // namespace ringccl
