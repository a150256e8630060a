// A piece of work on a stream. It is also the token of its own completion: an event is the last piece of its stream at the time
// of the record, and nothing that came later.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace standin {

class Work {
public:
    using Clock = std::chrono::steady_clock;
    using Shared = std::shared_ptr<Work>;

    // Runs after all of `after`, wherever they are, and after what precedes it on its stream.
    Work(std::function<void()> body, std::vector<Shared> after) : body_(std::move(body)), after_(std::move(after)) {}

    // The worker's. Nothing is run once the device has failed, but all is finished, so that nobody waits in vain.
    void run(const std::function<void()>& dawdle);

    void wait() const;
    bool finished() const;
    // The same for the stand-in's own housekeeping: the calling thread learns no order from it (edges.h).
    bool finished_unannounced() const;
    Clock::time_point finish_time() const;  // of finished work

private:
    std::function<void()> body_;
    std::vector<Shared> after_;
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    bool finished_ = false;
    Clock::time_point finish_time_;
};

}  // namespace standin
