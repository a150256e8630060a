// Tickets for objects that the C API hands out. A ticket is a slot number and a generation in the shape of a pointer, so that a
// stale, damaged or made-up one is noticed without being followed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace ringccl {

template <class T>
class HandleTable {
    struct Slot {
        std::atomic<uint64_t> ticket{0};
        std::atomic<int> pins{0};
        std::shared_ptr<T> object;
    };

public:
    // The object behind a ticket, kept alive while the pin is.
    class Pin {
    public:
        Pin() = default;
        explicit Pin(Slot* slot) : slot_(slot) {}
        Pin(Pin&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
        Pin& operator=(Pin&&) = delete;
        ~Pin() {
            if (slot_ != nullptr) slot_->pins.fetch_sub(1, std::memory_order_release);
        }
        explicit operator bool() const { return slot_ != nullptr; }
        T* operator->() const { return slot_->object.get(); }
        T& operator*() const { return *slot_->object; }
        const std::shared_ptr<T>& shared() const { return slot_->object; }

    private:
        Slot* slot_ = nullptr;
    };

    // 0 if the table is full.
    uint64_t add(std::shared_ptr<T> object) {
        std::lock_guard lock(mutex_);
        size_t index = free_.empty() ? used_ : free_.back();
        if (free_.empty()) {
            if (used_ == kSlots) return 0;
            ++used_;
        } else {
            free_.pop_back();
        }
        Slot& slot = slots_[index];
        slot.object = std::move(object);
        const uint64_t ticket = ++generation_ * kSlots + index;
        slot.ticket.store(ticket, std::memory_order_release);
        return ticket;
    }

    Pin find(uint64_t ticket) {
        Slot& slot = slots_[ticket % kSlots];
        // Pin first, look then: remove() takes the ticket away first and waits for the pins then.
        slot.pins.fetch_add(1, std::memory_order_seq_cst);
        Pin pin(&slot);
        if (ticket == 0 || slot.ticket.load(std::memory_order_seq_cst) != ticket) return {};
        return pin;
    }

    // Takes the object out once no call is using it; null if the ticket is not valid.
    std::shared_ptr<T> remove(uint64_t ticket) {
        Slot& slot = slots_[ticket % kSlots];
        uint64_t expected = ticket;
        if (ticket == 0 || !slot.ticket.compare_exchange_strong(expected, 0, std::memory_order_seq_cst)) return nullptr;
        while (slot.pins.load(std::memory_order_acquire) != 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
        std::shared_ptr<T> object = std::move(slot.object);
        std::lock_guard lock(mutex_);
        free_.push_back(ticket % kSlots);
        return object;
    }

private:
    static constexpr size_t kSlots = 1 << 14;
    Slot slots_[kSlots];
    std::mutex mutex_;
    std::vector<size_t> free_;
    size_t used_ = 0;
    uint64_t generation_ = 1;
};

}  // namespace ringccl
