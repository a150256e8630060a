// Peer-to-peer within a host: ranks of one process see each other's memory, ranks of several processes share memfd blocks whose
// descriptors a courier carries; where the kernel allows it, ordinary memory is fetched by process_vm_readv (CMA). Ranks on
// devices show each other device memory where that was proved to work, and else host memory that both devices reach.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/knobs.h"
#include "base/presence.h"
#include "bootstrap/secret.h"
#include "device/device.h"
#include "device/doorbell.h"
#include "transports/p2p/courier.h"
#include "transports/p2p/links.h"
#include "transports/transport.h"

namespace ringccl {

class P2pTransport final : public Transport {
public:
    // The bell is the owner's way to sleep; it moves into the arena, where peers can ring it.
    static Result<std::unique_ptr<P2pTransport>> open(const Secret& secret, int rank, int size, const Settings& settings,
                                                      const Presence& presence, Doorbell& bell, Device& device);
    // Before probe(): memory that peers will often be shown, so that it is passed to them at once; that of a device first. At
    // most Arena::kStages.
    Status lend(std::vector<std::shared_ptr<Block>> stages);

    const char* name() const override { return "p2p"; }
    nlohmann::json card() const override;
    Status probe(const std::vector<nlohmann::json>& cards, const std::vector<bool>& wanted, Deadline deadline,
                 const std::atomic<bool>& stop, std::vector<bool>& reached, std::vector<std::string>& why_not) override;
    Capabilities capabilities(int peer) const override;
    LinkCost cost(bool within_host) const override;
    Status connect(std::span<const int> peers, int lane, Deadline deadline, const std::atomic<bool>& stop) override;
    bool connected(int peer, int lane) const override { return send_links_[index(peer, lane)] != nullptr; }
    SendLink& sender(int peer, int lane) override { return *send_links_[index(peer, lane)]; }
    RecvLink& receiver(int peer, int lane) override { return *recv_links_[index(peer, lane)]; }
    bool progress() override;
    void watch(std::vector<pollfd>&) const override {}
    void withdraw() override;
    bool settled() override;
    Counters counters() const override { return counters_; }
    // How the peer's memory is reached, in words, e.g. "shared memory, copies by process_vm_readv from 16384 bytes".
    std::string describe(int peer) const;

    // ---- for the links ----
    const Arena& arena() const { return arena_; }
    int rank() const { return rank_; }
    bool gone(const Peer& peer) const { return presence_->gone(peer.rank); }
    size_t fetch_min_bytes() const { return fetch_min_bytes_; }
    bool on_device() const { return memory_ != nullptr; }
    size_t inline_bytes() const { return on_device() ? 0 : kInlineBytes; }
    // Makes sure that the peer has been sent our block; false if that must be tried again later.
    bool show(Peer& peer, const Block& block);
    // The peer's block; null while its descriptor is still on the way.
    const MappedBlock* find(Peer& peer, uint64_t id, Status& status);
    Result<bool> send_block(Peer& peer, const Block& block);
    void note(Peer& peer) {
        if (peer.to_ring) return;
        peer.to_ring = true;
        to_ring_.push_back(&peer);
    }
    void count_sent(size_t bytes);
    void count_received(size_t bytes);

private:
    P2pTransport() = default;
    size_t index(int peer, int lane) const { return static_cast<size_t>(peer) * kLanes + lane; }
    bool read_card(const nlohmann::json& card, Peer& peer, std::string& why_not);
    Status receive_letters();
    bool open_letter(Peer& peer, const Letter& letter, Fd descriptor, Status& status);
    void prove_fetching(Peer& peer, const nlohmann::json& card);
    void prove_seeing(Peer& peer, const nlohmann::json& card);
    Status see(Peer& peer, const nlohmann::json& card);

    int rank_ = 0;
    size_t fetch_min_bytes_ = 0;
    bool pointers_ = true, fetching_ = true;
    const Presence* presence_ = nullptr;
    Doorbell* bell_ = nullptr;
    PeerMemory* memory_ = nullptr;        // null on the host
    std::shared_ptr<SharedBlock> block_;  // holds our arena
    std::vector<std::shared_ptr<Block>> stages_;
    Arena arena_;
    std::unique_ptr<Courier> courier_;
    uint64_t probe_word_ = 0;  // random; a peer that reads it by process_vm_readv has reached the right process
    std::vector<Peer> peers_;
    std::vector<std::unique_ptr<P2pSendLink>> send_links_;
    std::vector<std::unique_ptr<P2pRecvLink>> recv_links_;
    std::vector<Peer*> to_ring_;
    Counters counters_;
};

}  // namespace ringccl
