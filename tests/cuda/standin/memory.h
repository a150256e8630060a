// Which addresses CUDA knows, and who may touch them.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "backing.h"

namespace standin {

struct Allocation {
    enum class Kind { device, pooled, imported, pinned, registered };

    Kind kind;
    char* base = nullptr;
    size_t size = 0;
    int device = 0;               // physical: where the memory is; the host's: the device that was current
    int opened_by = -1;           // physical: the device that an imported one was opened for
    unsigned flags = 0;           // of cudaHostAlloc and cudaHostRegister
    int openings = 1;             // of an imported one
    bool freed = false;           // kept for a while to tell a late touch
    cudaIpcMemHandle_t handle{};  // of an imported one
    Backing backing;

    bool on_device() const { return kind == Kind::device || kind == Kind::pooled || kind == Kind::imported; }
    bool contains(const void* memory, size_t bytes) const {
        auto offset = static_cast<size_t>(static_cast<const char*>(memory) - base);
        return offset <= size && bytes <= size - offset;
    }
};

using SharedAllocation = std::shared_ptr<Allocation>;

class Memory {
public:
    // Null if there is no room.
    SharedAllocation allocate(Allocation::Kind kind, size_t bytes, int physical_device);
    void add(SharedAllocation allocation);

    // The living allocation that holds the address, or null.
    SharedAllocation find(const void* address) const;
    SharedAllocation find_overlap(const void* address, size_t bytes) const;
    SharedAllocation find_if(const std::function<bool(const Allocation&)>& wanted) const;

    // Takes what begins at the address and is of a kind that `wanted` accepts out of the table; null if there is none.
    SharedAllocation remove(const void* base, const std::function<bool(const Allocation&)>& wanted);
    // Frees or closes device memory that was removed; its addresses are remembered, and belong to nobody for a while.
    void bury(const SharedAllocation& allocation);

    // Whether work of a device may touch the range. It may touch what CUDA does not know: that is the host's.
    bool may_touch(int physical_device, const void* memory, size_t bytes, bool write) const;
    size_t used(int physical_device) const;

    // With STANDIN_PROTECT, device memory is open while at least one piece of work touches it, and at other times faults: so
    // most of what a host does there by mistake is seen, as on a GPU. (Protection keys would show all of it, but few CPUs have
    // them.)
    class Touch {
    public:
        Touch();
        ~Touch();
        Touch(const Touch&) = delete;
        Touch& operator=(const Touch&) = delete;
    };

private:
    using Table = std::map<const char*, SharedAllocation>;

    mutable std::mutex mutex_;
    Table table_;
    std::deque<SharedAllocation> graves_;
    int touches_ = 0;

    Table::const_iterator at(const void* address) const;
    void set_open(bool open);
};

Memory& memory();

}  // namespace standin
