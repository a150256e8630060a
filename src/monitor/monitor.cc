#include "monitor/monitor.h"

#include <time.h>
#include <unistd.h>

#include <asio/post.hpp>
#include <set>

#include "base/process.h"
#include "base/signals.h"
#include "monitor/hub_server.h"
#include "trace/log.h"

namespace ringccl {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{25};  // for what does not ring: a flag to stop, the end of the thread

}  // namespace

// The monitors of this process whose threads run. A forked child makes itself a new one, for the old may be locked for ever.
struct Monitor::Registry {
    const int owner = process_id();
    std::mutex mutex;
    std::weak_ptr<Monitor> current;
    std::set<Monitor*> running;

    static std::atomic<Registry*>& place() {
        static std::atomic<Registry*> place{nullptr};
        return place;
    }

    static Registry& instance() {
        static const AtExit stop_them;
        Registry* there = place().load(std::memory_order_acquire);
        if (there && there->owner == process_id()) return *there;
        auto* fresh = new Registry;  // for ever: a thread may still be unlocking it when statics are destroyed
        if (place().compare_exchange_strong(there, fresh, std::memory_order_acq_rel)) return *fresh;
        delete fresh;
        return *there;
    }

    void stop_all() {
        std::set<Monitor*> threads;
        {
            std::lock_guard lock(mutex);
            threads.swap(running);
        }
        timespec limit;
        ::clock_gettime(CLOCK_REALTIME, &limit);
        limit.tv_sec += 1;
        // They stay, stopped: lifelines may lead to them that are destroyed later than this.
        for (Monitor* monitor : threads) asio::post(monitor->context_, [monitor] { monitor->farewell(); });
        for (Monitor* monitor : threads) ::pthread_timedjoin_np(monitor->thread_, nullptr, &limit);
    }

    struct AtExit {
        ~AtExit() {
            Registry* there = place().load(std::memory_order_acquire);
            if (there && there->owner == process_id()) there->stop_all();
        }
    };
};

Monitor::Monitor() : owner_(process_id()), context_(1), guard_(context_.get_executor()) {}
Monitor::~Monitor() = default;

bool Monitor::in_child() const {
    return owner_ != process_id();
}

Result<std::shared_ptr<Monitor>> Monitor::get() {
    return without_exceptions("opening the loop of the monitor", [&]() -> Result<std::shared_ptr<Monitor>> {
        log();  // in use before there is a registry, so at exit the registry goes first
        Registry& registry = Registry::instance();
        std::lock_guard lock(registry.mutex);
        if (auto there = registry.current.lock()) return there;

        std::unique_ptr<Monitor, void (*)(Monitor*)> fresh(new Monitor, [](Monitor* monitor) { delete monitor; });
        registry.running.insert(fresh.get());
        int error;
        {
            const SignalsBlocked blocked;
            error = ::pthread_create(&fresh->thread_, nullptr, run, fresh.get());
        }
        if (error != 0) {
            registry.running.erase(fresh.get());
            return system_failure(error, "starting the monitor's thread");
        }
        std::shared_ptr<Monitor> monitor(fresh.release(), let_go);
        registry.current = monitor;
        return monitor;
    });
}

void* Monitor::run(void* argument) {
    auto* self = static_cast<Monitor*>(argument);
    ::pthread_setname_np(::pthread_self(), "ringccl-monitor");
    for (bool again = true; again;) {
        try {
            self->context_.run();
            again = false;
        } catch (const std::exception& error) {
            log().error("the monitor goes on after a failure: {}", error.what());
        }
    }
    end_digests();  // while the end of the process still waits for this thread
    self->ended_.store(true, std::memory_order_release);
    if (!self->abandoned_) return nullptr;  // it will be joined
    Registry& registry = Registry::instance();
    std::unique_lock lock(registry.mutex);
    if (registry.running.erase(self) == 0) return nullptr;  // likewise, by the end of the process
    ::pthread_detach(::pthread_self());
    lock.unlock();
    delete self;
    return nullptr;
}

// The last holder's. Whatever is still open in the context then belongs to nobody.
void Monitor::let_go(Monitor* self) {
    if (self->in_child()) return;  // the context's descriptors are shared with the parent
    if (self->on_thread() && !self->ended_.load(std::memory_order_acquire)) {
        self->abandoned_ = true;
        self->context_.stop();
        return;
    }
    Registry& registry = Registry::instance();
    {
        std::lock_guard lock(registry.mutex);
        if (registry.running.erase(self) == 0) return;  // stopped at exit
    }
    self->context_.stop();
    ::pthread_join(self->thread_, nullptr);
    delete self;
}

bool Monitor::perform(std::function<void()> job, std::optional<milliseconds> bound) {
    if (on_thread()) {
        job();
        return true;
    }
    struct Errand {
        std::mutex mutex;
        std::condition_variable changed;
        std::function<void()> job;
        bool done = false;
    };
    auto errand = std::make_shared<Errand>();
    errand->job = std::move(job);
    asio::post(context_, [errand] {
        try {
            errand->job();
        } catch (const std::exception& error) {
            log().error("the monitor failed at a request: {}", error.what());
        }
        errand->job = nullptr;  // what it held is let go before the caller goes on
        std::lock_guard lock(errand->mutex);
        errand->done = true;
        errand->changed.notify_all();
    });
    const Deadline deadline = Deadline::after(bound.value_or(std::chrono::hours(24 * 365)));
    std::unique_lock lock(errand->mutex);
    while (!errand->changed.wait_for(lock, std::min(kLook, deadline.left()), [&] { return errand->done; })) {
        if (deadline.passed()) return false;
        if (!ended_.load(std::memory_order_acquire)) continue;
        lock.unlock();
        {
            std::lock_guard turn(turn_);
            context_.restart();
            context_.poll();
        }
        lock.lock();
    }
    return true;
}

void Monitor::keep(const Secret& secret, std::shared_ptr<HubServer> hub) {
    std::lock_guard lock(mutex_);
    hubs_[secret] = std::move(hub);
    arrived_.notify_all();
}

void Monitor::drop(const Secret& secret) {
    std::unique_lock lock(mutex_);
    auto hub = hubs_.extract(secret);
    lock.unlock();  // it may be the last that holds this monitor
}

std::shared_ptr<HubServer> Monitor::find(const Secret& secret, Deadline deadline, const std::atomic<bool>& stop) {
    std::unique_lock lock(mutex_);
    for (;;) {
        auto found = hubs_.find(secret);
        if (found != hubs_.end()) return found->second;
        if (deadline.passed() || stop.load(std::memory_order_acquire)) return nullptr;
        arrived_.wait_for(lock, std::min(kLook, deadline.left()));
    }
}

void Monitor::farewell() {
    std::map<Secret, std::shared_ptr<HubServer>> hubs;
    {
        std::lock_guard lock(mutex_);
        hubs = hubs_;
    }
    for (auto& [secret, hub] : hubs) hub->farewell();
    context_.stop();
}

}  // namespace ringccl
