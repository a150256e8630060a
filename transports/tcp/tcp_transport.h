// Slices over TCP. Each link has sockets of its own, so the kernel's flow control is the credit: a lane whose receiver is late
// fills its own sockets and holds up no other.
#pragma once

#include <memory>

#include "base/knobs.h"
#include "bootstrap/door.h"
#include "transports/transport.h"

namespace ringccl {

class TcpTransport final : public Transport {
public:
    // Opens the port that peers reach this rank at. `secret` is the communicator's; the transport derives its own.
    static Result<std::unique_ptr<TcpTransport>> open(const Secret& secret, int rank, int size, const Settings& settings,
                                                      const Presence& presence);
    // With a door that is open already.
    TcpTransport(std::unique_ptr<Door> door, int rank, int size, const Settings& settings, const Presence& presence);
    ~TcpTransport() override;

    const char* name() const override { return "tcp"; }
    nlohmann::json card() const override;
    // Learns the peers' addresses; any address is worth a try. The proof is connect(), which makes the sockets.
    Status probe(const std::vector<nlohmann::json>& cards, const std::vector<bool>& wanted, Deadline deadline,
                 const std::atomic<bool>& stop, std::vector<bool>& reached, std::vector<std::string>& why_not) override;
    Capabilities capabilities(int peer) const override;
    LinkCost cost(bool within_host) const override;

    Status connect(std::span<const int> peers, int lane, Deadline deadline, const std::atomic<bool>& stop) override;
    bool connected(int peer, int lane) const override;
    SendLink& sender(int peer, int lane) override;
    RecvLink& receiver(int peer, int lane) override;

    bool progress() override;
    void watch(std::vector<pollfd>& descriptors) const override;
    void withdraw() override;
    Counters counters() const override;

private:
    struct Link;

    const int rank_;
    const Settings settings_;
    const Presence& presence_;
    std::unique_ptr<Door> door_;
    std::vector<std::vector<Endpoint>> reach_;               // by rank; empty: not probed or without TCP
    std::vector<std::vector<std::unique_ptr<Link>>> links_;  // [lane][peer], null where not connected
    std::vector<Link*> live_;                                // all that are connected
};

}  // namespace ringccl
