#include "stream.h"

#include <driver_types.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "edges.h"
#include "settings.h"

namespace standin {
namespace {

unsigned long long next_id() {
    static std::atomic<unsigned long long> ids{0};
    return ++ids;
}

}  // namespace

Stream::Stream(Device& device, unsigned flags, int priority)
    : device_(device), flags_(flags), priority_(priority), id_(next_id()) {
    if (settings().seed) random_.seed(static_cast<unsigned>(*settings().seed * 7919 + id_));
}

bool Stream::blocking() const {
    return !(flags_ & cudaStreamNonBlocking);
}

void Stream::await_room() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return queue_.size() < settings().queue; });
}

void Stream::push(const Work::Shared& work) {
    release(work.get());
    std::scoped_lock lock(mutex_);
    queue_.push_back(work);
    last_ = work;
    if (!started_) start();
    changed_.notify_all();
}

Work::Shared Stream::last() const {
    std::scoped_lock lock(mutex_);
    return last_;
}

void Stream::close() {
    std::scoped_lock lock(mutex_);
    closing_ = true;
    changed_.notify_all();
}

void Stream::start() {
    started_ = true;
    // Signals are the program's; none of its handlers expects to run here.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([stream = shared_from_this()] { stream->serve(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Stream::serve() {
    Hidden hidden;
    while (Work::Shared work = next()) work->run([this] { dawdle(); });
}

Work::Shared Stream::next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return nullptr;
    Work::Shared work = queue_.front();
    queue_.pop_front();
    changed_.notify_all();
    return work;
}

// Half of the pieces start at once, most others within 200 us, and some so late that whoever did not wait for them is caught.
void Stream::dawdle() {
    if (!settings().seed || random_() % 2) return;
    bool long_one = random_() % 16 == 0;
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % (long_one ? 3000 : 200)));
}

}  // namespace standin
