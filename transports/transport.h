// The interface between the engine and whatever moves bytes. A transport says what its links can do (Capabilities, takes());
// the engine decides from that and never from a name, so every plan runs over every transport.
//
// A link is one direction between two ranks on one lane: an ordered sequence of slices. The sender offers a slice where it
// stands; the receiver is shown a View of it: peer memory, an inline slot, or the landing buffer that the engine lent.
// All calls on the links of one communicator come from one thread at a time and none of them blocks; only probe() and
// connect() wait, under a deadline and an abort flag.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "base/operation.h"
#include "base/status.h"
#include "device/block.h"
#include "plan/link_cost.h"

namespace ringccl {

// Slices that a link holds without the receiver doing anything: what makes the windows of plan/plan.h safe.
constexpr int kLinkDepth = 32;

struct Capabilities {
    size_t inline_bytes = 0;  // slices up to this size are copied by offer() itself: their memory is free at once
    bool lands = true;        // slices may be delivered into the landing; else the receiver is always shown memory
    bool host_only = true;    // only host memory can be offered, not that of a device
};

// Memory that is offered. `block` is the block that holds it, or null for ordinary memory.
struct Source {
    const std::byte* data = nullptr;
    size_t bytes = 0;
    const Block* block = nullptr;
    bool fetch = false;  // one receiver will copy it as it is: a dearer way of reading pays if it saves the copy to the stage
};

// A slice that has arrived. If print or bytes are not what was posted, data may be null and must not be read.
struct View {
    const std::byte* data = nullptr;
    size_t bytes = 0;
    Fingerprint print;
    bool lent = false;  // data is the sender's own memory, which it takes back if it fails: read it between pin() and unpin()
};

class SendLink {
public:
    virtual ~SendLink() = default;

    // Whether the source can be offered as it stands. If not, the engine offers a copy in its stage, which every link takes.
    virtual bool takes(const Source& source) const = 0;
    // Whether one more slice can be offered now.
    virtual bool ready() = 0;
    // Offers the next slice; only after ready(). The memory must not change until taken() has reached its number, which is
    // the value of offered() after the call.
    virtual void offer(const Fingerprint& print, const Source& source) = 0;
    virtual uint64_t offered() const = 0;
    // How many slices, from the first on, the peer is done with.
    virtual uint64_t taken() = 0;
    // Whether all that was offered goes its way without this rank's CPU.
    virtual bool flushed() const = 0;
    // Why nothing more will be taken, if so: taken() stands still for ever. Asked when nothing moves.
    virtual const Status& status() = 0;
};

class RecvLink {
public:
    virtual ~RecvLink() = default;

    enum class Taken { nothing, slice, broken };

    // Lends a buffer for the next slice that has none yet, at most kLinkDepth ahead. The buffer must stay until that slice has
    // been released. Slices are posted, taken and released in order.
    virtual void post(std::byte* landing, size_t bytes) = 0;
    // The next posted slice, if it is here. `broken`: the link has failed, see status().
    virtual Taken take(View& view) = 0;
    // Around reading a lent slice that has been taken. False: the sender has withdrawn it, status() says so; what was read
    // until then, if anything, is worth nothing. pin() must be followed by unpin() in any case.
    virtual bool pin() { return true; }
    virtual bool unpin() { return true; }
    // The oldest taken slice is no longer needed.
    virtual void release() = 0;
    virtual const Status& status() const = 0;
};

class Transport {
public:
    virtual ~Transport() = default;

    virtual const char* name() const = 0;
    // What peers must know to reach this rank. It travels over the authenticated bootstrap.
    virtual nlohmann::json card() const = 0;
    // Tries to reach each rank that `wanted` marks; cards[r] is what rank r's transport of this name gave (null if it has
    // none). On return reached[r] says whether it worked, and why_not[r], where it did not, why. Collective over the wanted
    // ranks.
    virtual Status probe(const std::vector<nlohmann::json>& cards, const std::vector<bool>& wanted, Deadline deadline,
                         const std::atomic<bool>& stop, std::vector<bool>& reached, std::vector<std::string>& why_not) = 0;
    virtual Capabilities capabilities(int peer) const = 0;
    // The same on all ranks: of links within a host, or of those to other hosts.
    virtual LinkCost cost(bool within_host) const = 0;

    // Makes sure that the links to and from these peers on this lane exist. Both ends of each pair call it.
    virtual Status connect(std::span<const int> peers, int lane, Deadline deadline, const std::atomic<bool>& stop) = 0;
    virtual bool connected(int peer, int lane) const = 0;
    // Only after connect.
    virtual SendLink& sender(int peer, int lane) = 0;
    virtual RecvLink& receiver(int peer, int lane) = 0;

    // Moves what can be moved now; true if anything moved.
    virtual bool progress() = 0;
    // Adds the descriptors whose readiness would let progress() do more. A transport that wakes its peers through their
    // doorbells adds none.
    virtual void watch(std::vector<pollfd>& descriptors) const = 0;

    // This rank fails and its caller may change or free any buffer: when this returns nobody reads what was offered any more,
    // and nobody takes what was read since for good. The links are spoilt.
    virtual void withdraw() = 0;

    // Whether no peer will still come for memory that goes when this rank goes. Other memory outlives it for whoever reads it.
    virtual bool settled() { return true; }

    // Bytes moved so far, headers apart from payload.
    struct Counters {
        uint64_t messages_sent = 0, payload_sent = 0, bytes_sent = 0, bytes_received = 0;
        uint64_t strangers = 0;  // connections turned away
    };
    virtual Counters counters() const = 0;
};

}  // namespace ringccl
