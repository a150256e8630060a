// The transports of one communicator and the way to each rank: made once, at initialisation, by all ranks together.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/knobs.h"
#include "bootstrap/bootstrap.h"
#include "device/doorbell.h"
#include "engine/program.h"
#include "plan/planners.h"
#include "transports/transport.h"

namespace ringccl {

class Fabric {
public:
    // Joins the meeting of `id`, tries every allowed transport to every rank that it may serve, agrees with the others on one
    // per pair, and connects the ring neighbours. `settings` takes over what rank 0 decides for all.
    static Result<std::unique_ptr<Fabric>> build(const ringUniqueId& id, int rank, int size, Settings& settings, Doorbell& bell,
                                                 Deadline deadline, const std::atomic<bool>& stop);
    ~Fabric();

    const World& world() const { return world_; }
    const CostModel& costs() const { return costs_; }
    const std::shared_ptr<SharedBlock>& stage() const { return stage_; }
    // The transports in use.
    std::vector<Transport*> transports() const;
    // The links, connected on first need, within `timeout` and unless stopped.
    Wiring wiring(std::chrono::milliseconds timeout, const std::atomic<bool>& stop);
    // The id of a meeting point for `members` of this world, ascending, that needs nothing of this communicator to work: all
    // members find the same one. It is opened by the first of them. `round` tells one such meeting from the next.
    Result<ringUniqueId> meeting_of(const std::vector<int>& members, uint64_t round, const Settings& settings) const;
    // How each rank is reached and why not by something better: for ringccl-info and the log.
    std::vector<std::string> report() const;

private:
    Fabric() = default;

    Status open_transports(const Secret& secret, const Settings& settings, Doorbell& bell);
    Status read_cards(const std::vector<std::string>& cards, Settings& settings);
    Status probe(Deadline deadline, const std::atomic<bool>& stop);
    Status agree(Bootstrap& bootstrap, Deadline deadline, const std::atomic<bool>& stop);
    Status connect_neighbours(Deadline deadline, const std::atomic<bool>& stop);
    Result<std::string> own_card(const Settings& settings) const;
    Status equip(Doorbell& bell);
    void model_costs();

    struct Choice;                                  // a transport with what probing it said
    std::vector<std::unique_ptr<Choice>> choices_;  // best first
    std::vector<int> chosen_;                       // for each rank, an index into choices_; -1 for this rank
    Secret secret_{};
    std::vector<std::vector<std::string>> addresses_;  // of each rank's host, best first
    World world_;
    CostModel costs_;
    std::shared_ptr<SharedBlock> stage_;
};

}  // namespace ringccl
