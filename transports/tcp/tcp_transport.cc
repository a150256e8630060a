#include "transports/tcp/tcp_transport.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "transports/tcp/tcp_receiver.h"
#include "transports/tcp/tcp_sender.h"

namespace ringccl {
namespace {

// The addresses in a peer's card. It was written by another process, so anything may be wrong with it.
Result<std::vector<Endpoint>> read_card(const nlohmann::json& card) {
    std::vector<Endpoint> endpoints;
    try {
        for (const auto& [address, port] : card.at("endpoints").get<std::vector<std::pair<std::string, uint16_t>>>())
            endpoints.push_back({address, port});
    } catch (const nlohmann::json::exception& error) {
        return failure(ringRemoteError, "its list of TCP addresses cannot be read: {}", error.what());
    }
    if (endpoints.empty()) return failure(ringRemoteError, "it can be reached at no TCP address");
    return endpoints;
}

}  // namespace

// Both directions between this rank and a peer on one lane, over the same sockets.
struct TcpTransport::Link {
    explicit Link(std::vector<TcpSocket> made) : sockets(std::move(made)), sender(sockets), receiver(sockets) {}

    std::vector<TcpSocket> sockets;
    TcpSender sender;
    TcpReceiver receiver;
};

Result<std::unique_ptr<TcpTransport>> TcpTransport::open(const Secret& secret, int rank, int size, const Settings& settings,
                                                         const Presence& presence) {
    RINGCCL_ASSIGN(auto door, Door::open(derive(secret, "tcp"), rank, settings));
    return std::make_unique<TcpTransport>(std::move(door), rank, size, settings, presence);
}

TcpTransport::TcpTransport(std::unique_ptr<Door> door, int rank, int size, const Settings& settings, const Presence& presence)
    : rank_(rank), settings_(settings), presence_(presence), door_(std::move(door)), reach_(size) {}

TcpTransport::~TcpTransport() = default;

nlohmann::json TcpTransport::card() const {
    auto endpoints = nlohmann::json::array();
    for (const Endpoint& endpoint : door_->endpoints()) endpoints.push_back({endpoint.address, endpoint.port});
    return {{"endpoints", endpoints}};
}

Status TcpTransport::probe(const std::vector<nlohmann::json>& cards, const std::vector<bool>& wanted, Deadline,
                           const std::atomic<bool>&, std::vector<bool>& reached, std::vector<std::string>& why_not) {
    reached.assign(reach_.size(), false);
    why_not.assign(reach_.size(), "");
    for (size_t peer = 0; peer < reach_.size(); ++peer) {
        if (!wanted[peer]) continue;
        if (cards[peer].is_null()) {
            why_not[peer] = "it does not offer TCP";
            continue;
        }
        auto endpoints = read_card(cards[peer]);
        if (endpoints.ok())
            reach_[peer] = endpoints.take();
        else
            why_not[peer] = endpoints.status().text();
        reached[peer] = endpoints.ok();
    }
    return {};
}

Capabilities TcpTransport::capabilities(int) const {
    return {};
}

// Loopback as measured, see docs/performance.md; beyond it round figures for Ethernet of 10 to 25 Gbit/s.
LinkCost TcpTransport::cost(bool within_host) const {
    LinkCost cost{.alpha_us = 3.0,
                  .message_us = 4.0,
                  .send_us_per_byte = 1.2e-4,
                  .recv_us_per_byte = 1.2e-4,
                  .slice_bytes = 96 << 10};  // four of 128 KiB and more stall in the sockets' buffers: half as fast
    if (!within_host) cost.alpha_us = 12.0, cost.recv_us_per_byte = 4e-4;
    return cost;
}

bool TcpTransport::connected(int peer, int lane) const {
    // A lane between others may not have been used yet.
    return static_cast<size_t>(lane) < links_.size() && !links_[lane].empty() && links_[lane][peer] != nullptr;
}

Status TcpTransport::connect(std::span<const int> peers, int lane, Deadline deadline, const std::atomic<bool>& stop) {
    const int sockets = std::max<int>(1, static_cast<int>(settings_.sockets));
    std::vector<int> fresh;
    std::vector<Wish> wishes;
    for (int peer : peers) {
        if (peer == rank_ || connected(peer, lane) || std::find(fresh.begin(), fresh.end(), peer) != fresh.end()) continue;
        if (reach_[peer].empty()) return failure(ringInternalError, "no TCP address of rank {} is known", peer);
        fresh.push_back(peer);
        for (int index = 0; index < sockets; ++index)
            wishes.push_back({.peer = peer, .lane = lane, .index = index, .dial = rank_ < peer, .at = reach_[peer]});
    }
    RINGCCL_ASSIGN(std::vector<Fd> made, door_->meet(wishes, presence_, deadline, stop));

    if (links_.size() <= static_cast<size_t>(lane)) links_.resize(lane + 1);
    links_[lane].resize(reach_.size());
    auto next = made.begin();
    for (int peer : fresh) {
        std::vector<TcpSocket> own;
        for (int index = 0; index < sockets; ++index) {
            RINGCCL_ASSIGN(TcpSocket socket, TcpSocket::adopt(std::move(*next++), peer, lane, settings_));
            own.push_back(std::move(socket));
        }
        links_[lane][peer] = std::make_unique<Link>(std::move(own));
        live_.push_back(links_[lane][peer].get());
    }
    return {};
}

SendLink& TcpTransport::sender(int peer, int lane) {
    return links_[lane][peer]->sender;
}

RecvLink& TcpTransport::receiver(int peer, int lane) {
    return links_[lane][peer]->receiver;
}

bool TcpTransport::progress() {
    bool moved = false;
    for (Link* link : live_) {
        if (link->sender.pending()) moved |= link->sender.pump();
        if (link->receiver.waiting()) moved |= link->receiver.pump();
    }
    return moved;
}

void TcpTransport::watch(std::vector<pollfd>& descriptors) const {
    for (const Link* link : live_) {
        for (size_t i = 0; i < link->sockets.size(); ++i) {
            int events = (link->sender.wants(i) ? POLLOUT : 0) | (link->receiver.wants(i) ? POLLIN : 0);
            if (events) descriptors.push_back({link->sockets[i].fd(), static_cast<short>(events), 0});
        }
    }
}

// The kernel has copies of what it took, and peers learn at once that no more will come.
void TcpTransport::withdraw() {
    for (const Link* link : live_)
        for (const TcpSocket& socket : link->sockets) socket.end();
}

Transport::Counters TcpTransport::counters() const {
    Counters sum;
    sum.strangers = door_->strangers();
    for (const Link* link : live_) {
        link->sender.add_to(sum);
        link->receiver.add_to(sum);
    }
    return sum;
}

}  // namespace ringccl
