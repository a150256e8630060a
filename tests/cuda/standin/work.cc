#include "work.h"

#include <utility>

#include "call.h"
#include "edges.h"

namespace standin {

void Work::run(const std::function<void()>& dawdle) {
    acquire(this);  // of the thread that enqueued it
    for (const Shared& before : after_) before->wait();
    dawdle();
    if (sticky_error() == cudaSuccess && body_) body_();
    // What the body holds, and the chain of those before, must not live as long as an event that points here.
    body_ = nullptr;
    after_.clear();
    release(this);
    std::scoped_lock lock(mutex_);
    finished_ = true;
    finish_time_ = Clock::now();
    changed_.notify_all();
}

void Work::wait() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return finished_; });
    acquire(this);
}

bool Work::finished() const {
    bool finished = finished_unannounced();
    if (finished) acquire(this);
    return finished;
}

bool Work::finished_unannounced() const {
    std::scoped_lock lock(mutex_);
    return finished_;
}

Work::Clock::time_point Work::finish_time() const {
    std::scoped_lock lock(mutex_);
    return finish_time_;
}

}  // namespace standin
