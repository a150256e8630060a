#include "memory.h"

#include <sys/mman.h>

#include "device.h"
#include "settings.h"

namespace standin {
namespace {

constexpr size_t remembered_graves = 256;

}  // namespace

Memory& memory() {
    static Memory& instance = *new Memory;  // never destroyed: workers outlive main
    return instance;
}

Memory::Table::const_iterator Memory::at(const void* address) const {
    auto next = table_.upper_bound(static_cast<const char*>(address));
    if (next == table_.begin()) return table_.end();
    auto entry = std::prev(next);
    bool holds = static_cast<const char*>(address) < entry->first + entry->second->size;
    return holds ? entry : table_.end();
}

SharedAllocation Memory::allocate(Allocation::Kind kind, size_t bytes, int physical_device) {
    if (used(physical_device) + bytes > settings().memory) return nullptr;
    auto allocation = std::make_shared<Allocation>();
    allocation->kind = kind;
    allocation->backing = Backing::create(bytes, physical_device);
    if (!allocation->backing) return nullptr;
    allocation->base = allocation->backing.base();
    allocation->size = bytes;
    allocation->device = physical_device;
    add(allocation);
    return allocation;
}

void Memory::add(SharedAllocation allocation) {
    std::scoped_lock lock(mutex_);
    if (settings().protect && allocation->backing) allocation->backing.set_open(touches_ > 0);
    const char* base = allocation->base;
    table_[base] = std::move(allocation);
}

SharedAllocation Memory::find(const void* address) const {
    std::scoped_lock lock(mutex_);
    auto entry = at(address);
    return entry == table_.end() || entry->second->freed ? nullptr : entry->second;
}

SharedAllocation Memory::find_overlap(const void* address, size_t bytes) const {
    if (SharedAllocation found = find(address)) return found;
    std::scoped_lock lock(mutex_);
    auto next = table_.upper_bound(static_cast<const char*>(address));
    bool overlaps = next != table_.end() && next->first < static_cast<const char*>(address) + bytes && !next->second->freed;
    return overlaps ? next->second : nullptr;
}

SharedAllocation Memory::find_if(const std::function<bool(const Allocation&)>& wanted) const {
    std::scoped_lock lock(mutex_);
    for (const auto& [base, allocation] : table_)
        if (!allocation->freed && wanted(*allocation)) return allocation;
    return nullptr;
}

SharedAllocation Memory::remove(const void* base, const std::function<bool(const Allocation&)>& wanted) {
    std::scoped_lock lock(mutex_);
    auto entry = table_.find(static_cast<const char*>(base));
    if (entry == table_.end() || entry->second->freed || !wanted(*entry->second)) return nullptr;
    SharedAllocation allocation = entry->second;
    table_.erase(entry);
    return allocation;
}

void Memory::bury(const SharedAllocation& allocation) {
    std::scoped_lock lock(mutex_);
    allocation->backing.free();
    allocation->freed = true;
    table_[allocation->base] = allocation;
    graves_.push_back(allocation);
    if (graves_.size() <= remembered_graves) return;
    table_.erase(graves_.front()->base);
    graves_.pop_front();
}

bool Memory::may_touch(int physical_device, const void* memory, size_t bytes, bool write) const {
    std::scoped_lock lock(mutex_);
    auto entry = at(memory);
    if (entry == table_.end()) return true;
    const Allocation& allocation = *entry->second;
    if (!allocation.on_device()) return !(write && (allocation.flags & cudaHostRegisterReadOnly));
    if (allocation.freed || allocation.backing.freed() || !allocation.contains(memory, bytes)) return false;
    if (allocation.kind == Allocation::Kind::imported && allocation.opened_by == physical_device) return true;
    if (allocation.device == physical_device) return true;
    // Pools are opened to peers by attributes of their own, which are not modelled.
    return allocation.kind != Allocation::Kind::pooled && peer_access_enabled(physical_device, allocation.device);
}

void Memory::set_open(bool open) {
    if (!settings().protect) return;
    for (const auto& [base, allocation] : table_)
        if (allocation->on_device() && !allocation->freed) allocation->backing.set_open(open);
}

Memory::Touch::Touch() {
    std::scoped_lock lock(memory().mutex_);
    if (memory().touches_++ == 0) memory().set_open(true);
}

Memory::Touch::~Touch() {
    std::scoped_lock lock(memory().mutex_);
    if (--memory().touches_ == 0) memory().set_open(false);
}

size_t Memory::used(int physical_device) const {
    std::scoped_lock lock(mutex_);
    size_t bytes = 0;
    for (const auto& [base, allocation] : table_) {
        bool counts = allocation->kind == Allocation::Kind::device || allocation->kind == Allocation::Kind::pooled;
        if (counts && !allocation->freed && allocation->device == physical_device) bytes += allocation->size;
    }
    return bytes;
}

}  // namespace standin
