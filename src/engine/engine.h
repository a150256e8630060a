// Carries out batches of operations of one communicator: starts each as soon as nothing before it holds its links, advances all
// of them, and waits when nothing moves. One thread at a time.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/health.h"
#include "device/doorbell.h"
#include "engine/patience.h"
#include "engine/program.h"

namespace ringccl {

struct Task {
    Program* program = nullptr;
    Operation operation;
    Binding binding;
    // Filled by the engine.
    size_t waits_for = 0;             // earlier tasks of the batch that hold one of its links
    std::vector<size_t> followed_by;  // later tasks that wait for this one
    size_t left = 0;                  // runners that are not done
};

class Engine {
public:
    struct Options {
        std::chrono::milliseconds timeout{300000};
        std::chrono::microseconds spin{50};
        int yields = 0;
    };

    Engine(std::vector<Transport*> transports, Doorbell& bell, const Health& health, std::shared_ptr<SharedBlock> stage,
           Options options);

    // Blocks until all tasks are done or one has failed; after a failure the links are spoilt and nothing more may be run.
    Status run(std::vector<Task>& tasks);

    uint64_t sleeps() const { return sleeps_.load(std::memory_order_relaxed); }

private:
    void order(std::vector<Task>& tasks);
    void start(Task& task);
    std::byte* scratch(int lane, size_t bytes);
    bool advance(std::vector<Task>& tasks, Status& status);
    void gather_descriptors();
    Status late(const std::vector<Task>& tasks) const;

    struct Active {
        Runner* runner;
        size_t task;
    };

    std::vector<Transport*> transports_;
    Doorbell& bell_;
    const Health& health_;
    Options options_;
    std::shared_ptr<SharedBlock> stage_block_;
    std::vector<Stage> stages_;                      // one per lane
    std::vector<std::vector<std::byte>> scratches_;  // per lane, grown on demand
    std::vector<Active> active_;
    const Task* tasks_begin_ = nullptr;  // of the batch that runs
    std::vector<pollfd> descriptors_;
    std::atomic<uint64_t> sleeps_{0};
};

}  // namespace ringccl
