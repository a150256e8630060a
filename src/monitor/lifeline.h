// Who is alive, and why a communicator cannot go on: every rank is tied to the hub (at rank 0) by a lifeline, on which it says
// that it lives, what failed, that it waits, and goodbye, and from which it hears the one verdict that all ranks get. Lifelines
// are served by the monitor, one sleeping thread per process; no operation waits for it and no data passes through it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/knobs.h"
#include "base/operation.h"
#include "base/status.h"
#include "bootstrap/secret.h"

namespace ringccl {

// What one rank is at, for the hub's questions.
struct Whereabouts {
    uint64_t begun = 0;                // collectives begun: the number of the next one
    std::string doing;                 // "allReduce (operation 17), waiting for rank 3"; empty between operations
    std::optional<Fingerprint> asked;  // the collective that was asked about, if it has been begun and is still on record
};

// The rank at the end of a lifeline. Its functions are called by the monitor's thread, not after ~Lifeline has begun to return,
// and must neither wait nor call the lifeline.
class Watched {
public:
    // The communicator cannot go on. Once at most.
    virtual void doomed(const Status& verdict) = 0;
    // The rank has said goodbye: what it will ever send has been sent, and what it has not taken it never will.
    virtual void left(int rank) = 0;
    // The rank has died or does not answer: before or after a verdict, so that a smaller communicator can be made without it.
    virtual void lost(int rank) = 0;
    virtual Whereabouts whereabouts(uint64_t sequence) = 0;

protected:
    ~Watched() = default;
};

// What the hub of a communicator is told about its ranks once all have joined.
struct Roster {
    std::vector<std::string> names;    // by rank, for texts: "rank 3 (process 4711 on node7)"
    std::vector<std::string> process;  // by rank: process_token(); ranks of the hub's process are tied to it without a socket
};

// Rank 0's part: where the others' lifelines end. Lives until all of them have, in the monitor, which this object only leads
// to.
class HubPost {
public:
    // Listens, so that card() can be passed on. ringSystemError: no socket.
    static Result<std::unique_ptr<HubPost>> open(const Secret& secret, const Settings& settings);
    virtual ~HubPost() = default;

    // How the others reach it. It travels over the authenticated bootstrap.
    virtual nlohmann::json card() const = 0;
    // From here on lifelines are taken in. Closes the port at once if nobody lives in another process, else when all have come.
    virtual void serve(const Roster& roster) = 0;
};

class Lifeline {
public:
    // Ties this rank to the hub that `card` describes, or to the one in this process. `watched` must outlive the lifeline.
    // Blocks until tied. ringTimeout: the text lists the addresses tried; ringRemoteError: stop was set; ringSystemError: no
    // socket.
    static Result<std::unique_ptr<Lifeline>> tie(const Secret& secret, int rank, const Roster& roster,
                                                 const nlohmann::json& card, const Settings& settings, Watched& watched,
                                                 Deadline deadline, const std::atomic<bool>& stop);
    // Without a goodbye before, this is a death to the others.
    virtual ~Lifeline() = default;

    // This rank cannot go on, for a reason of its own: all others get it as their verdict. ringMismatch and ringTimeout keep
    // code and text, all else becomes ringRemoteError with the rank's name before the text.
    virtual void failed(const Status& why) = 0;
    // This rank noticed that another one is gone. The cause itself may be on its way, so the hub waits a little before it makes
    // these words the verdict; and asks what all call under `sequence`, the collective in which that was noticed, if it was
    // one.
    virtual void echo(const Status& why, std::optional<uint64_t> sequence) = 0;
    // The operation's deadline has passed here. The hub asks all ranks where they are and gives everybody ringTimeout with
    // `why`, a list of the ranks that did not arrive and what each did last; or ringMismatch, if that is what it finds.
    // `sequence`: of a collective, else nullopt; `peers`: whom this rank waits for.
    virtual void late(const Status& why, std::optional<uint64_t> sequence, const std::vector<int>& peers) = 0;
    // A collective has not moved for a while: the hub asks all ranks what they call under that number, and if two differ, the
    // verdict is ringMismatch. Cheap, and may be said often.
    virtual void waiting(uint64_t sequence) = 0;
    // The same, said by the monitor in a tenth of a second and then after longer and longer whiles: for a caller that is about
    // to wait where it cannot speak. nullopt: it waits no longer.
    virtual void keep_waiting(std::optional<uint64_t> sequence) = 0;
    // Goodbye. Returns when it is on its way, within 100 ms. Nothing else may be said afterwards.
    virtual void leave() = 0;
};

}  // namespace ringccl
