#include "monitor/rank_end.h"

#include <asio/post.hpp>
#include <nlohmann/json.hpp>

#include "monitor/words.h"
#include "trace/log.h"

namespace ringccl {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

// The hub takes 300 ms to ask all ranks, or to hold back an echo.
constexpr milliseconds kVerdictTime{2000};
// Until a rank that waits says so first, and at most between two times.
constexpr milliseconds kFirstWait{100}, kRarestWait{10000};

}  // namespace

RankEnd::RankEnd(asio::io_context& context, int rank, Roster roster, Watched& watched)
    : rank_(rank),
      roster_(std::move(roster)),
      watched_(&watched),
      pulse_(milliseconds(0), Clock::now()),
      beat_timer_(context),
      answer_timer_(context),
      wait_timer_(context),
      gone_(roster_.names.size()) {}

void RankEnd::tie(std::shared_ptr<Line> line, milliseconds silence) {
    line_ = std::move(line);
    heard_ = Clock::now();
    pulse_ = Pulse(silence, heard_);
    auto weak = weak_from_this();
    line_->start(
        [weak](const json& message) {
            if (auto self = weak.lock()) self->hear(message);
        },
        [weak](const std::string& how) {
            if (auto self = weak.lock()) self->ended(how);
        });
    beat();
}

void RankEnd::tie(std::shared_ptr<HubServer> hub) {
    hub_ = std::move(hub);
    hub_->tie(rank_, [weak = weak_from_this()](const json& message) {
        if (auto self = weak.lock()) self->hear(message);
    });
}

void RankEnd::say(const json& message) {
    if (said_goodbye_) return;
    if (line_) line_->say(message);
    // Later, as over a connection: the hub may be speaking to us right now.
    if (hub_) asio::post(beat_timer_.get_executor(), [hub = hub_, rank = rank_, message] { hub->hear(rank, message); });
}

void RankEnd::say(const json& message, const Status& fallback) {
    if (doomed_ || said_goodbye_) return;
    if (!line_ && !hub_) return doom(fallback);
    say(message);
    answer_timer_.expires_after(kVerdictTime);
    answer_timer_.async_wait([weak = weak_from_this(), fallback](asio::error_code cancelled) {
        auto self = weak.lock();
        if (!cancelled && self) self->doom(fallback);
    });
}

void RankEnd::keep_waiting(std::optional<uint64_t> sequence) {
    wait_timer_.cancel();
    if (sequence) wait_on(*sequence, kFirstWait);
}

void RankEnd::wait_on(uint64_t sequence, milliseconds pause) {
    wait_timer_.expires_after(pause);
    wait_timer_.async_wait([weak = weak_from_this(), sequence, pause](asio::error_code cancelled) {
        auto self = weak.lock();
        if (cancelled || !self || self->doomed_ || self->said_goodbye_) return;
        self->say({{"say", "wait"}, {"sequence", sequence}});
        self->wait_on(sequence, std::min(2 * pause, kRarestWait));
    });
}

void RankEnd::leave() {
    say({{"say", "bye"}});
    said_goodbye_ = true;
    if (line_) line_->finish();
    beat_timer_.cancel();
    answer_timer_.cancel();
    wait_timer_.cancel();
}

void RankEnd::cut() {
    if (!watched_) return;
    watched_ = nullptr;
    if (hub_ && !said_goodbye_) hub_->ended(rank_, "");
    leave_hub();
    answer_timer_.cancel();
    wait_timer_.cancel();
}

void RankEnd::leave_hub() {
    hub_ = nullptr;
    beat_timer_.cancel();
    if (auto line = std::exchange(line_, nullptr)) line->close();
}

void RankEnd::hear(const json& message) {
    heard_ = Clock::now();
    if (!watched_ || said_goodbye_) return;
    const std::string kind = text_in(message, "say");
    const int rank = rank_in(message, "rank", gone_.size());
    if (kind == "verdict") doom(failure_in(message));
    if (kind == "ask") answer(message);
    if (kind == "lost" && rank >= 0) lose(rank);
    if (kind == "left" && rank >= 0 && !gone_[rank]) {
        gone_[rank] = true;
        watched_->left(rank);
    }
    // The ranks that are left have no hub any more, and go on without.
    if (kind == "bye") leave_hub();
}

void RankEnd::answer(const json& question) {
    auto sequence = natural_in(question, "sequence");
    say(where_message(sequence, watched_->whereabouts(sequence.value_or(~uint64_t{0}))));
}

void RankEnd::ended(const std::string& how) {
    leave_hub();
    if (!watched_ || said_goodbye_) return;
    const std::vector<int> dead = hub_company();
    for (int rank : dead) lose(rank);
    if (dead.empty()) return;
    doom(failure(ringRemoteError,
                 "{} has died: its lifeline ended without a goodbye (killed, crashed, or it exited without "
                 "ringCommDestroy{}{})",
                 roster_.names[dead.front()], how.empty() ? "" : "; it ", how));
}

void RankEnd::beat() {
    const auto now = Clock::now();
    const Pulse::Beat due = pulse_.tick(now);
    if (due == Pulse::Beat::slept) heard_ = now;
    if (due != Pulse::Beat::none) {
        if (pulse_.silent(heard_, now)) {
            Status gone = failure(
                ringRemoteError, "{} has not answered for {:.1f} s: its process is stopped, or its host or the network is gone",
                roster_.names[0], std::chrono::duration<double>(now - heard_).count());
            leave_hub();
            if (!watched_) return;
            for (int rank : hub_company()) lose(rank);
            return doom(gone);
        }
        say({{"say", "beat"}});
    }
    if (pulse_.next() == Clock::time_point::max()) return;
    beat_timer_.expires_at(pulse_.next());
    beat_timer_.async_wait([weak = weak_from_this()](asio::error_code cancelled) {
        auto self = weak.lock();
        if (!cancelled && self && self->line_) self->beat();
    });
}

void RankEnd::doom(const Status& verdict) {
    if (verdict.ok() || !watched_ || said_goodbye_ || std::exchange(doomed_, true)) return;
    answer_timer_.cancel();
    log().debug("rank {}: the verdict is: {}", rank_, verdict.text());
    watched_->doomed(verdict);
}

void RankEnd::lose(int rank) {
    if (!watched_ || gone_[rank]) return;
    gone_[rank] = true;
    watched_->lost(rank);
}

std::vector<int> RankEnd::hub_company() const {
    std::vector<int> ranks;
    for (size_t rank = 0; rank < gone_.size(); ++rank)
        if (!gone_[rank] && roster_.process[rank] == roster_.process[0]) ranks.push_back(static_cast<int>(rank));
    return ranks;
}

}  // namespace ringccl
