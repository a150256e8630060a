// A block of memory that ranks of other processes can be shown. How they open it depends on what kind of memory it is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ringccl {

class Block {
public:
    virtual ~Block() = default;
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    // Makes the block known to find().
    static void enrol(const std::shared_ptr<Block>& block);
    // The block of this process with that id, or null: how ranks of one process find each other's.
    static std::shared_ptr<Block> find(uint64_t id);

    std::byte* data() const { return data_; }
    size_t bytes() const { return bytes_; }
    uint64_t id() const { return id_; }  // random, never 0: names the block to peers
    bool contains(const void* at, size_t bytes) const {
        auto* begin = static_cast<const std::byte*>(at);
        return begin >= data_ && begin + bytes <= data_ + bytes_;
    }

    // What another process opens it by: a descriptor; or, where that is -1, what its device calls it.
    using DeviceName = std::array<std::byte, 72>;
    virtual int fd() const { return -1; }
    virtual DeviceName device_name() const { return {}; }

protected:
    Block() = default;

    std::byte* data_ = nullptr;
    size_t bytes_ = 0;
    uint64_t id_ = 0;
};

}  // namespace ringccl
