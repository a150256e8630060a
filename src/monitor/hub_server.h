// The hub at work: its port, the lines of the ranks in other processes, and the ties of those in this one. Used on the
// monitor's thread, which keeps it until the last line has ended.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "bootstrap/challenge.h"
#include "bootstrap/listening.h"
#include "monitor/hub.h"
#include "monitor/line.h"
#include "monitor/monitor.h"

namespace ringccl {

// The port while it is open. It outlives the hub a little: what its connections have begun must come to an end first.
class HubPort;

class HubServer final : public std::enable_shared_from_this<HubServer>, private Hub::Lines {
public:
    using Hear = std::function<void(const nlohmann::json&)>;

    // `secret`: the derived one.
    HubServer(std::shared_ptr<Monitor> monitor, const Secret& secret, const Roster& roster, std::chrono::milliseconds silence);
    ~HubServer();

    // Opens the hub to ranks of this process, and through `listening` to others.
    void start(Listening listening);
    // Its post has gone: who has not come yet will not come.
    void close_port();

    // A rank of this process: what the hub says to it is passed to `deliver`, later on this thread.
    void tie(int rank, Hear deliver);
    void hear(int rank, const nlohmann::json& message);
    void ended(int rank, const std::string& how);
    void farewell();

private:
    void say(int rank, const nlohmann::json& message) override;
    void hang_up(int rank) override;

    void arrive(Socket socket, const Hello& hello);
    // After everything that happened: what is due now, when to look again, and whether this was the end.
    void settle();

    std::shared_ptr<Monitor> monitor_;
    const Secret secret_;
    const std::chrono::milliseconds silence_;
    std::vector<bool> local_;  // by rank: in this process
    Hub hub_;
    std::shared_ptr<HubPort> port_;
    std::map<int, std::shared_ptr<Line>> lines_;
    std::map<int, Hear> ties_;
    asio::steady_timer timer_;
    Hub::Clock::time_point timer_at_ = Hub::Clock::time_point::max();
    bool post_gone_ = false;
    bool over_ = false;
};

}  // namespace ringccl
