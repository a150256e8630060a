// An in-order queue with a worker of its own, which is started by the first piece of work.
#pragma once

#include <atomic>
#include <deque>
#include <random>

#include "work.h"

namespace standin {

class Device;

class Stream : public std::enable_shared_from_this<Stream> {
public:
    Stream(Device& device, unsigned flags, int priority);

    Device& device() const { return device_; }
    unsigned flags() const { return flags_; }
    int priority() const { return priority_; }
    unsigned long long id() const { return id_; }
    // Whether it and the legacy default stream wait for each other.
    bool blocking() const;

    // Capture is only a state: no graph comes of it.
    bool capturing() const { return capturing_; }
    void set_capturing(bool capturing) { capturing_ = capturing; }

    // Waits while it is full.
    void await_room();
    // Only Device::submit calls it: it knows what else must be waited for.
    void push(const Work::Shared& work);
    // The last piece that was pushed; null if there was none.
    Work::Shared last() const;
    // The worker ends when the queue is empty; the caller need not wait for that.
    void close();

private:
    Device& device_;
    const unsigned flags_;
    const int priority_;
    const unsigned long long id_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Work::Shared> queue_;
    Work::Shared last_;
    std::atomic<bool> capturing_{false};
    bool started_ = false;
    bool closing_ = false;
    std::minstd_rand random_;

    void start();
    void serve();
    Work::Shared next();
    void dawdle();
};

using SharedStream = std::shared_ptr<Stream>;

}  // namespace standin
