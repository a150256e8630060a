#include "monitor/hub_server.h"

#include <asio/post.hpp>
#include <nlohmann/json.hpp>

#include "bootstrap/reception.h"
#include "monitor/descendants.h"
#include "trace/log.h"

namespace ringccl {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

}  // namespace

class HubPort : public std::enable_shared_from_this<HubPort> {
public:
    HubPort(asio::io_context& context, Listening listening, const Secret& secret, Reception::Arrival arrived)
        : listening_(std::move(listening)),
          secret_(secret),
          reception_(context, *listening_, secret_, Purpose::lifeline, 0, strangers_, std::move(arrived)),
          timer_(context) {}
    ~HubPort() { release(); }

    void close() {
        release();
        reception_.retire();
        listening_.reset();
        timer_.expires_after(kRundown);
        timer_.async_wait([self = shared_from_this()](asio::error_code) {});
    }

private:
    static constexpr milliseconds kRundown{200};  // longer than Reception pauses for anything

    void release() {
        if (!listening_) return;
        for (const Listening::Socket& socket : listening_->sockets()) leave_to_children(socket.fd.get());
    }

    std::optional<Listening> listening_;
    const Secret secret_;
    Strangers strangers_;
    Reception reception_;
    asio::steady_timer timer_;
};

HubServer::HubServer(std::shared_ptr<Monitor> monitor, const Secret& secret, const Roster& roster, milliseconds silence)
    : monitor_(std::move(monitor)),
      secret_(secret),
      silence_(silence),
      hub_(roster.names, silence, *this, Hub::Clock::now()),
      timer_(monitor_->context()) {
    for (const std::string& process : roster.process) local_.push_back(process == roster.process.front());
    local_.resize(roster.names.size());
}

HubServer::~HubServer() = default;

void HubServer::start(Listening listening) {
    if (std::find(local_.begin(), local_.end(), false) != local_.end()) {
        auto arrived = [weak = weak_from_this()](Socket socket, const Hello& hello) {
            if (auto self = weak.lock()) self->arrive(std::move(socket), hello);
        };
        port_ = std::make_shared<HubPort>(monitor_->context(), std::move(listening), secret_, std::move(arrived));
    }
    monitor_->keep(secret_, shared_from_this());
    settle();
}

void HubServer::close_port() {
    post_gone_ = true;
    if (auto port = std::exchange(port_, nullptr)) port->close();
    settle();
}

void HubServer::arrive(Socket socket, const Hello& hello) {
    const int rank = hello.from;
    if (over_ || !hub_.joinable(rank) || local_[rank]) return;  // the connection ends here
    auto line = std::make_shared<Line>(std::move(socket), silence_);
    auto weak = weak_from_this();
    line->start(
        [weak, rank](const json& message) {
            if (auto self = weak.lock()) self->hear(rank, message);
        },
        [weak, rank](const std::string& how) {
            if (auto self = weak.lock()) self->ended(rank, how);
        });
    lines_[rank] = std::move(line);
    hub_.joined(rank, false, Hub::Clock::now());
    log().debug("hub: rank {} is tied", rank);
    settle();
}

void HubServer::tie(int rank, Hear deliver) {
    if (!hub_.joinable(rank)) return;
    ties_[rank] = std::move(deliver);
    hub_.joined(rank, true, Hub::Clock::now());
    settle();
}

void HubServer::hear(int rank, const json& message) {
    hub_.hear(rank, message, Hub::Clock::now());
    settle();
}

void HubServer::ended(int rank, const std::string& how) {
    hub_.ended(rank, how, Hub::Clock::now());
    hang_up(rank);
    settle();
}

void HubServer::farewell() {
    hub_.farewell(Hub::Clock::now());
}

void HubServer::say(int rank, const json& message) {
    if (auto line = lines_.find(rank); line != lines_.end()) line->second->say(message);
    if (auto tie = ties_.find(rank); tie != ties_.end())
        asio::post(monitor_->context(), [deliver = tie->second, message] { deliver(message); });
}

void HubServer::hang_up(int rank) {
    ties_.erase(rank);
    if (auto line = lines_.extract(rank)) line.mapped()->close();
}

void HubServer::settle() {
    if (over_) return;
    auto self = shared_from_this();
    const auto now = Hub::Clock::now();
    const auto next = hub_.tick(now);
    if (hub_.complete() && port_) std::exchange(port_, nullptr)->close();
    if (hub_.empty() && (hub_.complete() || post_gone_)) {
        over_ = true;
        timer_.cancel();
        monitor_->drop(secret_);
        return;
    }
    // A timer that rings early does no harm, and is not set anew for every message.
    if (next >= timer_at_) return;
    timer_at_ = next;
    timer_.expires_at(next);
    timer_.async_wait([weak = weak_from_this()](asio::error_code cancelled) {
        auto self = weak.lock();
        if (cancelled || !self) return;
        self->timer_at_ = Hub::Clock::time_point::max();
        self->settle();
    });
}

}  // namespace ringccl
