// A rank's end of its lifeline: what it says to the hub and makes of what the hub says. Used on the monitor's thread.
#pragma once

#include <memory>
#include <vector>

#include "monitor/hub_server.h"
#include "monitor/line.h"
#include "monitor/pulse.h"

namespace ringccl {

class RankEnd : public std::enable_shared_from_this<RankEnd> {
public:
    using Clock = Deadline::Clock;

    RankEnd(asio::io_context& context, int rank, Roster roster, Watched& watched);

    // Over a connection: both ends beat, and the hub's silence for so long is its death.
    void tie(std::shared_ptr<Line> line, std::chrono::milliseconds silence);
    // To the hub of this process.
    void tie(std::shared_ptr<HubServer> hub);

    // To the hub. If no verdict comes of it soon, because there is no hub any more, the rank gets `fallback`.
    void say(const nlohmann::json& message);
    void say(const nlohmann::json& message, const Status& fallback);
    // Says that the rank waits in that collective, again and again until told otherwise.
    void keep_waiting(std::optional<uint64_t> sequence);
    void leave();
    // The rank wants to hear nothing any more. Without leave() before, it dies to the others.
    void cut();

private:
    void hear(const nlohmann::json& message);
    void answer(const nlohmann::json& question);
    void ended(const std::string& how);
    void beat();
    void wait_on(uint64_t sequence, std::chrono::milliseconds pause);
    void doom(const Status& verdict);
    void lose(int rank);
    void leave_hub();
    // The ranks that live in the hub's process, as far as they have not said goodbye.
    std::vector<int> hub_company() const;

    const int rank_;
    const Roster roster_;
    Watched* watched_;  // null after cut()
    std::shared_ptr<Line> line_;
    std::shared_ptr<HubServer> hub_;  // one of the two, as long as there is a hub
    Pulse pulse_;
    Clock::time_point heard_;
    asio::steady_timer beat_timer_, answer_timer_, wait_timer_;
    std::vector<bool> gone_;  // by rank: has left or is lost
    bool doomed_ = false;
    bool said_goodbye_ = false;
};

}  // namespace ringccl
