// The transports of one communicator and the way to each rank: made once, at initialisation, by all ranks together.
#pragma once

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/knobs.h"
#include "base/presence.h"
#include "bootstrap/bootstrap.h"
#include "device/doorbell.h"
#include "engine/engine.h"
#include "monitor/lifeline.h"
#include "plan/planners.h"
#include "topology/topology.h"
#include "transports/transport.h"

namespace ringccl {

class Fabric {
public:
    // What the fabric needs of its owner, which outlives it.
    struct Owner {
        Doorbell& bell;
        Device& device;
        const Presence& presence;
        Watched& watched;
        const std::atomic<bool>& stop;     // aborted, or doomed by another rank
        const std::atomic<bool>& aborted;  // by this rank
    };
    // Joins the meeting of `id`, ties the lifeline, tries every allowed transport to every rank that it may serve, agrees with
    // the others on one per pair, and connects the ring neighbours. `settings` takes over what rank 0 decides for all.
    static Result<std::unique_ptr<Fabric>> build(const ringUniqueId& id, int rank, int size, Settings& settings, Owner owner,
                                                 Deadline deadline);
    ~Fabric();
    // Instead: joins the meeting only to tell all others why this rank cannot take part.
    static void decline(const ringUniqueId& id, int rank, int size, const Settings& settings, const Status& why);

    const World& world() const { return world_; }
    const CostModel& costs() const { return costs_; }
    const StageBlocks& stages() const { return stages_; }
    size_t stage_bytes() const { return stage_bytes_; }  // of one lane
    // The transports in use.
    std::vector<Transport*> transports() const;
    // Null in a world of one.
    Lifeline* lifeline() const { return lifeline_.get(); }
    // Says goodbye. Afterwards the owner hears nothing any more.
    void untie();
    // The links, connected on first need, within `timeout` and unless stopped; their slices are counted in `recorder`.
    Wiring wiring(std::chrono::milliseconds timeout, const std::atomic<bool>& stop, FlightRecorder& recorder);
    // The same on all ranks, and another one for every communicator.
    uint64_t name() const;
    // What the flight records of this communicator begin with.
    FlightRecorder::Header record_header() const;
    // The id of a meeting point for `members` of this world, ascending, that needs nothing of this communicator to work: all
    // members find the same one. It is opened by the first of them. `round` tells one such meeting from the next.
    Result<ringUniqueId> meeting_of(const std::vector<int>& members, uint64_t round, const Settings& settings) const;
    // How each rank is reached and why not by something better: for ringccl-info and the log.
    std::vector<std::string> report() const;

private:
    Fabric() = default;

    Status open_transports(const Settings& settings, const Owner& owner);
    Status meet(Bootstrap& bootstrap, Settings& settings, const Owner& owner, Deadline deadline);
    Status read_cards(const std::vector<std::string>& cards, Settings& settings);
    Status make_stages(const Settings& settings, Device& device);
    Status reach_host_stage(Device& device);
    Status probe(Deadline deadline, const std::atomic<bool>& stop);
    Status agree(Bootstrap& bootstrap, Deadline deadline, const std::atomic<bool>& stop);
    Status connect_neighbours(Deadline deadline, const std::atomic<bool>& stop);
    Result<std::string> own_card(const Settings& settings, Device& device) const;
    Status equip(Doorbell& bell);
    void model_costs(const Reached& reached);

    struct Choice;                                  // a transport with what probing it said
    std::vector<std::unique_ptr<Choice>> choices_;  // best first
    std::vector<int> chosen_;                       // for each rank, an index into choices_; -1 for this rank
    Secret secret_{};
    Roster roster_;
    nlohmann::json hub_card_;
    std::unique_ptr<HubPost> hub_;  // on rank 0
    std::unique_ptr<Lifeline> lifeline_;
    std::vector<std::vector<std::string>> addresses_;  // of each rank's host, best first
    World world_;
    CostModel costs_;
    StageBlocks stages_;
    size_t stage_bytes_ = 0;
    std::shared_ptr<void> host_reach_;  // of the device, to stages_.host
};

}  // namespace ringccl
