// Carries out batches of operations of one communicator: starts each as soon as nothing before it holds its links, advances all
// of them, and waits when nothing moves. One thread at a time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/doorbell.h"
#include "engine/health.h"
#include "engine/patience.h"
#include "engine/program.h"
#include "engine/slice_trace.h"
#include "trace/flight_recorder.h"
#include "trace/timeline.h"

namespace ringccl {

struct Task {
    Program* program = nullptr;
    Operation operation;
    Binding binding;
    uint64_t record = 0;  // in the flight recorder
    // Filled by the engine.
    size_t waits_for = 0;             // earlier tasks of the batch that hold one of its links
    std::vector<size_t> followed_by;  // later tasks that wait for this one
    size_t left = 0;                  // runners that are not done
};

// Where results wait for peers: on the device and, if that is not the host and not all peers can be shown it, on the host too.
struct StageBlocks {
    std::shared_ptr<Block> device, host;

    std::vector<std::shared_ptr<Block>> all() const {
        return host != nullptr ? std::vector{device, host} : std::vector{device};
    }
};

class Engine {
public:
    struct Options {
        std::chrono::milliseconds timeout{300000};
        std::chrono::microseconds spin{50};
        int yields = 0;
        // Called when a collective of that number has not moved for a while, and then again after longer and longer whiles.
        std::function<void(uint64_t sequence)> lasting;
        Timeline* timeline = nullptr;
    };

    Engine(std::vector<Transport*> transports, Doorbell& bell, const Health& health, FlightRecorder& recorder,
           std::shared_ptr<Device> device, StageBlocks stages, Options options);

    // Blocks until all tasks are done or one has failed; after a failure the links are spoilt and nothing more may be run.
    Status run(std::vector<Task>& tasks);
    // Copies within this rank's device, which may overlap only if they are the same. On return it is done.
    Status copy(void* dst, const void* src, size_t bytes);
    // After run() has failed or thrown: when this returns, nothing of the batch reads or writes any buffer.
    void abandon();

    // After run() has failed: the collective that did not end, the oldest if there are several, and the ranks that this one
    // waits for.
    struct Standstill {
        std::optional<uint64_t> sequence;
        std::vector<int> peers;
    };
    Standstill standstill();

    uint64_t sleeps() const { return sleeps_.load(std::memory_order_relaxed); }

private:
    void order();
    void lay_out_scratch();
    void start(Task& task);
    void finish(Task& task);
    bool advance(Status& status);
    bool sleep(std::chrono::microseconds limit, Status& status);
    void note_waiting(std::chrono::steady_clock::duration waited);
    void gather_descriptors();
    Status late();

    struct Active {
        Runner* runner;
        size_t task;
    };

    std::vector<Transport*> transports_;
    Doorbell& bell_;
    const Health& health_;
    FlightRecorder& recorder_;
    Options options_;
    std::optional<SliceTrace> trace_;
    std::shared_ptr<Device> device_;
    StageBlocks stage_blocks_;
    std::vector<Stage> stages_, host_stages_;  // one per lane; the second empty if the first can be shown to every peer
    struct Scratch {
        std::byte* memory = nullptr;
        size_t needed = 0, used = 0;
    };
    Scratch work_[kLanes], landings_[kLanes];  // of the batch that runs
    std::vector<Active> active_;
    std::vector<Task>* tasks_ = nullptr;                 // the batch that runs
    std::chrono::steady_clock::duration next_notice_{};  // how long nothing may move until lasting() is called
    std::vector<Timeline::Ticks> begun_;                 // by task; only with a timeline
    std::vector<pollfd> descriptors_;
    std::atomic<uint64_t> sleeps_{0};
};

}  // namespace ringccl
