// How the ranks of a communicator find each other. The rank that makes the unique id runs a meeting point (one thread, gone
// when the ranks have met); every rank, that one included, joins there.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/knobs.h"
#include "base/status.h"
#include "bootstrap/secret.h"

namespace ringccl {

// Makes an id and starts its meeting point, which ends when all ranks have met, when one of them fails, or when the process
// ends.
Result<ringUniqueId> open_meeting(const Settings& settings);

// A meeting point that all ranks can name beforehand (ringCommInitEnv).
struct Place {
    Secret secret{};
    std::string host;  // name or numeric address of rank 0's host
    uint16_t port = 0;
    uint8_t ports = 1;  // so many ports from there on may be the one: rank 0 takes the first that is free, the others try all
    uint8_t call = 0;   // which of the job's meetings, so that the next does not end up at the one before
};
// On rank 0: opens the meeting point there, within settings.init_timeout_ms if all its ports are taken now.
Result<ringUniqueId> open_meeting(const Place& place, const Settings& settings);
// On the others: the id that leads there. ringInvalidUsage: the host's name cannot be resolved.
Result<ringUniqueId> id_of(const Place& place, const Settings& settings);

// The secret in an id. ringInvalidArgument: the id is damaged (its checksum is wrong) or from another version.
Result<Secret> secret_of(const ringUniqueId& id);

// What the environment of a launcher says (bootstrap/environment.cc, docs/wire.md): torchrun, Open MPI, MPICH/PMI, Slurm, or
// our own variables. On rank 0 the id's meeting point has been opened.
struct Placement {
    int rank = 0;
    int size = 1;
    std::string launcher;  // "torchrun"
    ringUniqueId id;
};
Result<Placement> placement_from_environment(const Settings& settings);
// Only who we are: rank, size, launcher; opens nothing. Fails with ringInvalidUsage if no launcher is recognised.
Result<Placement> place_in_launcher();

class Bootstrap {
public:
    // Joins and waits until all have. `mine` is this rank's card; cards() then has everybody's. ringInvalidUsage: ranks
    // contradict each other. ringTimeout: who is missing and which addresses were tried. ringRemoteError: another rank failed;
    // or stop.
    static Result<std::unique_ptr<Bootstrap>> join(const ringUniqueId& id, int rank, int size, const std::string& mine,
                                                   const Settings& settings, Deadline deadline, const std::atomic<bool>& stop);
    virtual ~Bootstrap() = default;

    virtual const std::vector<std::string>& cards() const = 0;

    // Collective: gives every rank everybody's text. If any rank called fail() instead, or died, all get ringRemoteError with
    // its number and words.
    virtual Result<std::vector<std::string>> exchange(const std::string& mine, Deadline deadline,
                                                      const std::atomic<bool>& stop) = 0;

    // Instead of exchange: tells all ranks that this one cannot go on. Returns once the meeting point has it, or at the
    // deadline.
    virtual void fail(const Status& why, Deadline deadline) = 0;
};

}  // namespace ringccl
