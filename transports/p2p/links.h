// Links through shared memory. The sender writes an entry into its outbox and, for a payload that does not fit inside, says
// where it stands; the receiver reads it there and moves its `released` counter.
#pragma once

#include <array>

#include "transports/p2p/peer.h"
#include "transports/transport.h"

namespace ringccl {

class P2pTransport;

class P2pSendLink final : public SendLink {
public:
    P2pSendLink(P2pTransport& transport, Peer& peer, int lane);

    bool takes(const Source& source) const override;
    bool ready() override;
    void offer(const Fingerprint& print, const Source& source) override;
    uint64_t offered() const override { return offered_; }
    uint64_t taken() override { return released_ = counter_->load(std::memory_order_acquire); }
    bool flushed() const override { return true; }
    const Status& status() override;

private:
    P2pTransport& transport_;
    Peer& peer_;
    Entry* outbox_;
    const std::atomic<uint64_t>* counter_;  // in the peer's arena
    bool peer_fetches_;                     // the peer can read our memory by process_vm_readv
    bool peer_sees_;                        // its device can read memory of ours
    uint64_t offered_ = 0;
    uint64_t released_ = 0;  // as last seen
    Status status_;
};

class P2pRecvLink final : public RecvLink {
public:
    P2pRecvLink(P2pTransport& transport, Peer& peer, int lane);

    void post(std::byte* landing, size_t bytes) override;
    Taken take(View& view) override;
    bool pin() override;
    bool unpin() override;
    void release() override;
    const Status& status() const override { return status_; }

private:
    Taken locate(const Entry& entry, View& view);
    Taken nothing();
    bool stands();

    P2pTransport& transport_;
    Peer& peer_;
    const Entry* outbox_;             // in the peer's arena
    std::atomic<uint64_t>* counter_;  // in ours
    std::atomic<uint32_t>* reading_;  // in ours
    uint32_t pins_ = 0;               // what it holds
    struct Posted {
        std::byte* landing;
        size_t bytes;
    };
    std::array<Posted, kLinkDepth> posts_;
    uint64_t posted_ = 0, taken_ = 0, released_ = 0;
    Status status_;
};

}  // namespace ringccl
