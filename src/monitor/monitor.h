// The thread that serves the lifelines of this process: one, started when the first is tied, gone with the last. It sleeps
// between messages and beats.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/deadline.h"
#include "base/status.h"
#include "bootstrap/loop.h"
#include "bootstrap/secret.h"

namespace ringccl {

class HubServer;

class Monitor {
public:
    // The one of this process, started if there is none. It lives as long as somebody holds it: when the last lets go, the
    // thread has ended on return, unless that happens on the thread itself. A forked child has none until it asks for one;
    // its parent's, which it may still hold, does nothing there.
    static Result<std::shared_ptr<Monitor>> get();

    // For everything that the thread serves.
    asio::io_context& context() { return context_; }
    bool on_thread() const { return const_cast<Monitor*>(this)->context_.get_executor().running_in_this_thread(); }
    bool in_child() const;  // this is a forked child of the process that it belongs to

    // Carries out `job` on the thread and waits until that is done, or until `bound` is over (false). After the thread has
    // been stopped at exit, on the calling thread. Not in a child.
    bool perform(std::function<void()> job, std::optional<std::chrono::milliseconds> bound = {});

    // The hubs served here, by their derived secret. keep and drop: on the thread.
    void keep(const Secret& secret, std::shared_ptr<HubServer> hub);
    void drop(const Secret& secret);
    // Waits until there is one. Null: the deadline has passed or stop was set.
    std::shared_ptr<HubServer> find(const Secret& secret, Deadline deadline, const std::atomic<bool>& stop);

private:
    struct Registry;

    Monitor();
    ~Monitor();
    static void* run(void* self);
    static void let_go(Monitor* self);
    void farewell();

    const int owner_;  // process
    asio::io_context context_;
    asio::executor_work_guard<asio::io_context::executor_type> guard_;
    pthread_t thread_{};
    std::atomic<bool> ended_{false};  // nobody runs the context any more
    bool abandoned_ = false;          // on the thread: the last holder has let go
    std::mutex turn_;                 // of who runs the context after the end
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::map<Secret, std::shared_ptr<HubServer>> hubs_;
};

}  // namespace ringccl
