// One rank of one communicator: numbers the operations, turns them into programs, and has the engine run them, on the caller's
// thread if the caller waits anyway, else on the communicator's worker.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/presence.h"
#include "base/process.h"
#include "communicator/fabric.h"
#include "communicator/programs.h"
#include "communicator/tables.h"
#include "communicator/work_queue.h"
#include "device/memory_table.h"
#include "device/order.h"
#include "engine/engine.h"
#include "engine/health.h"
#include "monitor/lifeline.h"
#include "trace/flight_recorder.h"
#include "trace/timeline.h"

namespace ringccl {

class Communicator final : private Watched {
public:
    // Does nothing yet but that it can be aborted.
    Communicator(int rank, int size, Settings settings, std::shared_ptr<Device> device);
    ~Communicator();

    // Joins the others. Once, by the thread that makes the communicator.
    Status meet(const ringUniqueId& id);
    // Whether meet() has succeeded. Until then only abort(), async_error() and the plain questions may be asked.
    bool made() const { return made_.load(std::memory_order_acquire); }

    int rank() const { return rank_; }
    int size() const { return size_; }
    const Settings& settings() const { return settings_; }
    Health& health() { return health_; }
    Device& device() const { return *device_; }
    // False in a process forked from the one that made the communicator.
    bool in_own_process() const { return pid_ == process_id(); }

    // Carries out operations together. Without streams: on return they are done (or failed). With: they are queued behind what
    // each stream holds.
    Status run(std::span<const Operation> operations);
    Status enqueue(std::span<const Operation> operations, const std::vector<std::shared_ptr<Order>>& streams);

    // Ranks that have died or do not answer, ascending.
    std::vector<int> lost() const { return presence_.lost(); }
    // Writes the flight record as it is now.
    Status write_record(const std::string& file) const;

    // Waits for all queued work, refuses new. Returns the first failure.
    Status finalize();
    bool finalized() const { return finalized_.load(); }
    void abort();
    // ringInProgress while work is queued.
    ringResult_t async_error();

    UserOps& ops() { return ops_; }
    const UserOps& ops() const { return ops_; }
    Registrations& registrations() { return registrations_; }

    // While an operation is running: as it was before.
    ringCommStats_t stats();
    std::vector<std::string> link_report() const { return fabric_->report(); }
    // A meeting point for some of the ranks that works even if this communicator does not.
    Result<ringUniqueId> meeting_of(const std::vector<int>& members, const Settings& settings) {
        return fabric_->meeting_of(members, meetings_++, settings);
    }

private:
    // ---- the monitor's thread ----
    void doomed(const Status& verdict) override;
    void left(int rank) override;
    void lost(int rank) override;
    Whereabouts whereabouts(uint64_t sequence) override;

    Status execute(std::span<const Operation> operations) noexcept;
    Status carry_out(std::span<const Operation> operations);
    Status prepare(std::span<const Operation> operations);
    Status settle(const Status& failure);
    void await_readers();
    void leave_record() const;
    void leave_record_aside();
    void number(Operation& operation);
    void bind(Task& task);
    Status usable() const;
    ringCommStats_t count() const;

    const int rank_, size_;
    Settings settings_;
    const pid_t pid_ = process_id();
    Health health_;
    const Status no_memory_;
    Presence presence_;
    Doorbell bell_;
    const std::shared_ptr<Device> device_;
    std::atomic<bool> made_{false};
    std::atomic<bool> aborted_{false};
    std::unique_ptr<FlightRecorder> recorder_;
    std::unique_ptr<Timeline> timeline_;
    std::unique_ptr<Fabric> fabric_;
    std::unique_ptr<Engine> engine_;

    // Only the thread that runs the engine touches these.
    std::unique_ptr<Programs> programs_;
    std::vector<Task> tasks_;
    Engine::Standstill standstill_;                    // where a ringTimeout came from
    std::vector<std::shared_ptr<Block>> held_blocks_;  // keeps the blocks of running operations alive
    uint64_t sequence_ = 0;
    std::vector<uint64_t> sends_, recvs_;  // per peer
    std::atomic<uint64_t> completed_{0};

    std::mutex mutex_;    // what makes a communicator and what ends it see each other
    std::thread scribe_;  // whoever records the first failure may start it
    std::atomic<bool> finalized_{false};
    WorkQueue work_;
    ringCommStats_t stats_{};  // as of the last time that nobody was running

    UserOps ops_;
    Registrations registrations_;
    std::atomic<uint64_t> meetings_{0};  // equal on all ranks, which make the same calls
};

}  // namespace ringccl
