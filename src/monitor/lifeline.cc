#include "monitor/lifeline.h"

#include <nlohmann/json.hpp>

#include "bootstrap/dialer.h"
#include "bootstrap/interfaces.h"
#include "monitor/rank_end.h"
#include "monitor/words.h"

namespace ringccl {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr milliseconds kGoodbyeTime{100};

Result<std::vector<Endpoint>> endpoints_in(const json& card) {
    std::vector<Endpoint> endpoints;
    auto port = natural_in(card, "port");
    auto addresses = card.find("addresses");
    if (port && *port > 0 && *port <= 65535 && addresses != card.end() && addresses->is_array())
        for (const json& address : *addresses)
            if (address.is_string()) endpoints.push_back({address.get<std::string>(), static_cast<uint16_t>(*port)});
    if (endpoints.empty()) return failure(ringInternalError, "rank 0's card does not say where lifelines are taken in");
    return endpoints;
}

struct Dialed {
    Fd fd;
    bool v6 = false;
};

Result<Dialed> dial_hub(const Secret& secret, int rank, const json& card, const Settings& settings, Deadline deadline,
                        const std::atomic<bool>& stop) {
    RINGCCL_ASSIGN(auto endpoints, endpoints_in(card));
    RINGCCL_ASSIGN(auto all, host_interfaces());
    RINGCCL_ASSIGN(auto allowed, choose_interfaces(std::move(all), settings.interface));
    const auto begin = Deadline::Clock::now();
    Dialed dialed;
    asio::io_context context(1);
    Dialer dialer(context, secret, Hello{Purpose::lifeline, rank, 0, 0, 0}, ways_to(endpoints, allowed, settings.interface),
                  [&](Socket socket, const Endpoint&) {
                      asio::error_code ignored;
                      dialed.v6 = socket.local_endpoint(ignored).protocol() == asio::ip::tcp::v6();
                      dialed.fd.reset(socket.release());
                  });
    Outcome outcome = run_until(context, deadline, stop, [&] { return bool(dialed.fd) || dialer.starved(); });
    if (outcome == Outcome::done && !dialed.fd)
        return failure(ringSystemError, "rank {} cannot tie its lifeline to the hub at rank 0: {}", rank, dialer.report());
    if (outcome == Outcome::stopped) return failure(ringRemoteError, "tying the lifeline was aborted in this process");
    if (outcome == Outcome::deadline)
        return failure(ringTimeout,
                       "rank {} was not tied to the hub at rank 0 within {:.1f} s; tried {}. Rank 0 has failed or ended, or "
                       "RINGCCL_INTERFACE should name a network that the hosts share",
                       rank, std::chrono::duration<double>(Deadline::Clock::now() - begin).count(), dialer.report());
    return dialed;
}

class MonitoredLifeline final : public Lifeline {
public:
    MonitoredLifeline(std::shared_ptr<Monitor> monitor, std::shared_ptr<RankEnd> end)
        : monitor_(std::move(monitor)), end_(std::move(end)) {}
    ~MonitoredLifeline() override;

    void failed(const Status& why) override { report("fail", why, {{"echo", false}}); }
    void echo(const Status& why, std::optional<uint64_t> sequence) override;
    void late(const Status& why, std::optional<uint64_t> sequence, const std::vector<int>& peers) override;
    void waiting(uint64_t sequence) override;
    void keep_waiting(std::optional<uint64_t> sequence) override;
    void leave() override;

private:
    using Clock = Deadline::Clock;
    static constexpr milliseconds kWaitPause{250};

    void report(const char* word, const Status& why, json message);

    std::shared_ptr<Monitor> monitor_;
    std::shared_ptr<RankEnd> end_;
    std::atomic<uint64_t> last_sequence_{~uint64_t{0}};
    std::atomic<int64_t> last_said_{0};  // ticks of the clock
};

MonitoredLifeline::~MonitoredLifeline() {
    if (monitor_->in_child()) {
        new std::shared_ptr<RankEnd>(std::move(end_));  // the parent's
        return;
    }
    monitor_->perform([end = std::move(end_)] { end->cut(); });
}

void MonitoredLifeline::report(const char* word, const Status& why, json message) {
    if (monitor_->in_child()) return;
    message.update(message_of(why));
    message["say"] = word;
    asio::post(monitor_->context(), [end = end_, message = std::move(message), why] { end->say(message, why); });
}

void MonitoredLifeline::echo(const Status& why, std::optional<uint64_t> sequence) {
    json message = {{"echo", true}};
    if (sequence) message["sequence"] = *sequence;
    report("fail", why, std::move(message));
}

void MonitoredLifeline::late(const Status& why, std::optional<uint64_t> sequence, const std::vector<int>& peers) {
    json message = {{"peers", peers}};
    if (sequence) message["sequence"] = *sequence;
    report("late", why, std::move(message));
}

void MonitoredLifeline::waiting(uint64_t sequence) {
    const int64_t now = Clock::now().time_since_epoch().count();
    const bool same = last_sequence_.exchange(sequence, std::memory_order_relaxed) == sequence;
    if (same && now - last_said_.load(std::memory_order_relaxed) < Clock::duration(kWaitPause).count()) return;
    last_said_.store(now, std::memory_order_relaxed);
    if (monitor_->in_child()) return;
    asio::post(monitor_->context(), [end = end_, sequence] { end->say({{"say", "wait"}, {"sequence", sequence}}); });
}

void MonitoredLifeline::keep_waiting(std::optional<uint64_t> sequence) {
    if (monitor_->in_child()) return;
    asio::post(monitor_->context(), [end = end_, sequence] { end->keep_waiting(sequence); });
}

void MonitoredLifeline::leave() {
    if (monitor_->in_child()) return;
    monitor_->perform([end = end_] { end->leave(); }, kGoodbyeTime);
}

}  // namespace

Result<std::unique_ptr<Lifeline>> Lifeline::tie(const Secret& secret, int rank, const Roster& roster, const json& card,
                                                const Settings& settings, Watched& watched, Deadline deadline,
                                                const std::atomic<bool>& stop) {
    const auto size = roster.names.size();
    if (rank < 0 || static_cast<size_t>(rank) >= size || roster.process.size() != size)
        return failure(ringInternalError, "rank {} is not in the roster of {} ranks", rank, size);
    return without_exceptions("tying the lifeline", [&]() -> Result<std::unique_ptr<Lifeline>> {
        const Secret derived = derive(secret, "lifeline");
        RINGCCL_ASSIGN(auto monitor, Monitor::get());
        auto end = std::make_shared<RankEnd>(monitor->context(), rank, roster, watched);
        auto lifeline = std::make_unique<MonitoredLifeline>(monitor, end);
        if (roster.process[rank] == roster.process[0]) {
            auto hub = monitor->find(derived, deadline, stop);
            if (!hub && !deadline.passed()) return failure(ringRemoteError, "tying the lifeline was aborted in this process");
            if (!hub)
                return failure(ringTimeout, "rank {} was not tied to the hub at rank 0, in its own process, which is not there",
                               rank);
            monitor->perform([&] { end->tie(std::move(hub)); });
        } else {
            RINGCCL_ASSIGN(Dialed dialed, dial_hub(derived, rank, card, settings, deadline, stop));
            asio::error_code error;
            monitor->perform([&] {
                using asio::ip::tcp;
                Socket socket(monitor->context());
                socket.assign(dialed.v6 ? tcp::v6() : tcp::v4(), dialed.fd.get(), error);
                if (error) return;
                dialed.fd.release();
                const milliseconds silence(std::max<int64_t>(settings.heartbeat_ms, 0));
                end->tie(std::make_shared<Line>(std::move(socket), silence), silence);
            });
            if (error) return system_failure(error.value(), "watching the lifeline's socket");
        }
        return std::unique_ptr<Lifeline>(std::move(lifeline));
    });
}

}  // namespace ringccl
