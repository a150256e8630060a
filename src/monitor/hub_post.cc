#include <nlohmann/json.hpp>
#include <optional>

#include "monitor/descendants.h"
#include "monitor/hub_server.h"

namespace ringccl {
namespace {

class MonitorPost final : public HubPost {
public:
    MonitorPost(std::shared_ptr<Monitor> monitor, Listening listening, const Secret& secret, const Settings& settings)
        : monitor_(std::move(monitor)),
          listening_(std::move(listening)),
          secret_(secret),
          silence_(std::max<int64_t>(settings.heartbeat_ms, 0)) {
        for (const Listening::Socket& socket : listening_->sockets()) close_in_children(socket.fd.get());
        for (const Endpoint& endpoint : listening_->endpoints()) addresses_.push_back(endpoint.address);
        port_ = listening_->endpoints().front().port;
    }
    ~MonitorPost() override;

    nlohmann::json card() const override { return {{"port", port_}, {"addresses", addresses_}}; }
    void serve(const Roster& roster) override;

private:
    void close();

    std::shared_ptr<Monitor> monitor_;
    std::optional<Listening> listening_;  // until it is served
    const Secret secret_;
    const std::chrono::milliseconds silence_;
    std::vector<std::string> addresses_;
    uint16_t port_ = 0;
    std::shared_ptr<HubServer> server_;
};

MonitorPost::~MonitorPost() {
    if (monitor_->in_child()) {
        // All this is the parent's, and the descriptors are closed already.
        if (listening_) new Listening(std::move(*listening_));
        new std::shared_ptr<HubServer>(std::move(server_));
        return;
    }
    close();
    if (server_) monitor_->perform([server = std::move(server_)] { server->close_port(); });
}

void MonitorPost::close() {
    if (!listening_) return;
    for (const Listening::Socket& socket : listening_->sockets()) leave_to_children(socket.fd.get());
    listening_.reset();
}

void MonitorPost::serve(const Roster& roster) {
    if (monitor_->in_child() || server_ || roster.names.empty() || roster.process.size() != roster.names.size()) return;
    server_ = std::make_shared<HubServer>(monitor_, secret_, roster, silence_);
    auto remote = [&](const std::string& process) { return process != roster.process.front(); };
    const bool all_here = std::none_of(roster.process.begin(), roster.process.end(), remote);
    if (all_here) close();
    monitor_->perform([&] { server_->start(listening_ ? std::move(*listening_) : Listening()); });
    listening_.reset();
}

}  // namespace

Result<std::unique_ptr<HubPost>> HubPost::open(const Secret& secret, const Settings& settings) {
    return without_exceptions("opening the hub of a communicator", [&]() -> Result<std::unique_ptr<HubPost>> {
        const Secret derived = derive(secret, "lifeline");
        RINGCCL_ASSIGN(Listening listening, Listening::open(settings, 0));
        RINGCCL_ASSIGN(auto monitor, Monitor::get());
        return std::unique_ptr<HubPost>(new MonitorPost(std::move(monitor), std::move(listening), derived, settings));
    });
}

}  // namespace ringccl
