// An event: the piece of work that stood last on a stream when the event was recorded. Recording it again replaces that; who
// waits for the former record is not concerned.
#pragma once

#include "work.h"

namespace standin {

class Device;

class Event {
public:
    Event(Device& device, unsigned flags) : device_(device), flags_(flags) {}

    Device& device() const { return device_; }
    unsigned flags() const { return flags_; }

    void set_record(Work::Shared work) {
        std::scoped_lock lock(mutex_);
        record_ = std::move(work);
    }
    Work::Shared record() const {  // null before the first
        std::scoped_lock lock(mutex_);
        return record_;
    }

private:
    Device& device_;
    const unsigned flags_;
    mutable std::mutex mutex_;
    Work::Shared record_;
};

}  // namespace standin
