// Host memory that other processes of the host can be shown: a sealed memfd, never a name in /dev/shm.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "base/fd.h"
#include "base/status.h"
#include "device/block.h"

namespace ringccl {

class SharedBlock final : public Block {
public:
    // `bytes` of zeroed memory, rounded up to whole pages.
    static Result<std::shared_ptr<SharedBlock>> create(const char* label, size_t bytes);
    ~SharedBlock() override;

    // Gives the pages back to the system although peers may still have them mapped: only when nobody will read them again.
    // Merely destroying a block leaves to peers what they have mapped.
    void discard();

    int fd() const override { return fd_.get(); }

private:
    SharedBlock() = default;

    Fd fd_;
};

// A peer's block as seen from here: mapped read-only or, for doorbells, writable; or opened by a device.
class MappedBlock {
public:
    static Result<MappedBlock> map(int fd, size_t bytes, bool writable);
    MappedBlock() = default;
    // `close` is called when it is not needed any more.
    MappedBlock(std::byte* data, size_t bytes, std::function<void()> close)
        : data_(data), bytes_(bytes), close_(std::move(close)) {}
    MappedBlock(MappedBlock&& other) noexcept { *this = std::move(other); }
    MappedBlock& operator=(MappedBlock&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(close_, other.close_);
        return *this;
    }
    ~MappedBlock() {
        if (close_) close_();
    }

    std::byte* data() const { return data_; }
    size_t bytes() const { return bytes_; }

private:
    std::byte* data_ = nullptr;
    size_t bytes_ = 0;
    std::function<void()> close_;
};

}  // namespace ringccl
