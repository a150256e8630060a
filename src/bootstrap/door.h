// A listening port that only ranks of this communicator get through: every connection opens with a mutual keyed challenge under
// a deadline (docs/wire.md). Strangers are dropped, counted and logged with their address; however many there are and
// however silent, they delay nobody.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/knobs.h"
#include "base/presence.h"
#include "base/status.h"
#include "bootstrap/secret.h"

namespace ringccl {

struct Endpoint {
    std::string address;  // numeric, IPv4 or IPv6, with %scope where needed
    uint16_t port = 0;
};

// One socket that two ranks want between them. Both ends name it alike; exactly one of them dials.
struct Wish {
    int peer = 0;
    int lane = 0;
    int index = 0;  // among the sockets of this lane
    bool dial = false;
    std::vector<Endpoint> at;  // where to dial, best first; all are tried, the first that answers the challenge wins
};

class Door {
public:
    // Listens on every address that settings.interface allows. `rank` says who we are to whoever comes in.
    static Result<std::unique_ptr<Door>> open(const Secret& secret, int rank, const Settings& settings);
    virtual ~Door() = default;

    // Where others can dial, best first.
    virtual const std::vector<Endpoint>& endpoints() const = 0;

    // Waits until every wished socket is there and passed the challenge; result[i] belongs to wishes[i], non-blocking.
    // Sockets that arrive before they are wished for are kept. ringTimeout: the text lists who is missing and every address
    // tried with its error. ringSystemError: this process lacks descriptors. ringRemoteError: `stop` was set (naming nobody),
    // or presence says that a peer is gone. No wish, no wait.
    virtual Result<std::vector<Fd>> meet(std::span<const Wish> wishes, const Presence& presence, Deadline deadline,
                                         const std::atomic<bool>& stop) = 0;

    virtual uint64_t strangers() const = 0;
};

}  // namespace ringccl
