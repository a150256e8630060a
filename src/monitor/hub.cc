#include "monitor/hub.h"

#include <nlohmann/json.hpp>

#include "monitor/words.h"

namespace ringccl {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

// How long the echo of a failure waits for the failure itself.
constexpr milliseconds kEchoHeld{300};
// How long a question waits for answers.
constexpr milliseconds kAnswerTime{300};
// Between two questions about one collective, and between any two.
constexpr milliseconds kSameAgain{250}, kNextQuestion{50};

double seconds(Hub::Clock::duration span) {
    return std::chrono::duration<double>(span).count();
}

}  // namespace

Hub::Hub(std::vector<std::string> names, milliseconds silence, Lines& lines, Clock::time_point now)
    : names_(std::move(names)), lines_(lines), ranks_(names_.size()), awaited_(names_.size()), pulse_(silence, now) {}

bool Hub::joinable(int rank) const {
    return rank >= 0 && static_cast<size_t>(rank) < ranks_.size() && ranks_[rank].state == State::awaited;
}

void Hub::joined(int rank, bool local, Clock::time_point now) {
    if (!joinable(rank)) return;
    for (size_t other = 0; other < ranks_.size(); ++other) {
        if (ranks_[other].state == State::left) lines_.say(rank, {{"say", "left"}, {"rank", other}});
        if (ranks_[other].state == State::lost) lines_.say(rank, {{"say", "lost"}, {"rank", other}});
    }
    ranks_[rank] = {State::present, local, false, now};
    --awaited_;
    ++present_;
    if (verdict_) lines_.say(rank, verdict_message());
}

void Hub::hear(int rank, const json& message, Clock::time_point now) {
    if (rank < 0 || static_cast<size_t>(rank) >= ranks_.size() || ranks_[rank].state != State::present) return;
    ranks_[rank].heard = now;
    const std::string kind = text_in(message, "say");
    // A "beat" has done its work by being heard. Words that this version does not know are no reason to fail.
    if (kind == "fail") fail(rank, message, now);
    if (kind == "late") late(message, now);
    if (kind == "wait") wait(message, now);
    if (kind == "where") where(rank, message);
    if (kind == "bye") bye(rank);
    if (inquiry_ && inquiry_->complete()) conclude(now);
}

void Hub::fail(int rank, const json& message, Clock::time_point now) {
    Status theirs = failure_in(message);
    if (verdict_ || theirs.ok()) return;
    auto echo = message.find("echo");
    if (echo != message.end() && echo->is_boolean() && echo->get<bool>()) {
        if (echo_) return;
        echo_ = Status(ringRemoteError, theirs.text());
        echo_due_ = now + kEchoHeld;
        // Perhaps the one that went had called something else and was done with it.
        wait(message, now);
        return;
    }
    if (theirs.code() == ringMismatch || theirs.code() == ringTimeout) return decide(theirs);
    // "rank 3 was aborted by ringCommAbort" says itself who it was, but not where.
    const std::string self = fmt::format("rank {} ", rank);
    if (theirs.text().starts_with(self))
        decide(failure(ringRemoteError, "{} {}", names_[rank], theirs.text().substr(self.size())));
    else
        decide(failure(ringRemoteError, "{} cannot go on: {}", names_[rank], theirs.text()));
}

void Hub::late(const json& message, Clock::time_point now) {
    if (verdict_ || (inquiry_ && inquiry_->late())) return;
    Status theirs = failure_in(message);
    if (theirs.ok()) return;
    ask_all(natural_in(message, "sequence"), Inquiry::Late{theirs.text(), peers_in(message, ranks_.size())}, now);
}

void Hub::wait(const json& message, Clock::time_point now) {
    auto sequence = natural_in(message, "sequence");
    if (verdict_ || !sequence || (inquiry_ && (inquiry_->late() || inquiry_->sequence() == sequence))) return;
    wanted_.insert(*sequence);
    tick(now);
}

void Hub::where(int rank, const json& message) {
    ranks_[rank].unanswered = false;
    if (!inquiry_) return;
    if (natural_in(message, "sequence") == inquiry_->sequence())
        inquiry_->answer(rank, where_in(message));
    else
        ask(rank);  // that was the answer to an earlier question
}

void Hub::bye(int rank) {
    remove(rank, State::left, "left");
    lines_.hang_up(rank);
}

void Hub::ended(int rank, const std::string& how, Clock::time_point now) {
    if (rank < 0 || static_cast<size_t>(rank) >= ranks_.size() || ranks_[rank].state != State::present) return;
    remove(rank, State::lost, "lost");
    decide(failure(ringRemoteError,
                   "{} has died: its lifeline ended without a goodbye (killed, crashed, or it exited without "
                   "ringCommDestroy{}{})",
                   names_[rank], how.empty() ? "" : "; it ", how));
    if (inquiry_ && inquiry_->complete()) conclude(now);
}

void Hub::farewell(Clock::time_point now) {
    if (!has_left(0)) return;
    // Ranks of this process that have said no goodbye end with it.
    for (size_t rank = 0; rank < ranks_.size(); ++rank)
        if (ranks_[rank].local) ended(static_cast<int>(rank), "", now);
    say_all({{"say", "bye"}});
}

void Hub::remove(int rank, State state, const char* word) {
    ranks_[rank].state = state;
    --present_;
    if (inquiry_) inquiry_->give_up(rank);
    say_all({{"say", word}, {"rank", rank}});
}

Hub::Clock::time_point Hub::tick(Clock::time_point now) {
    if (echo_ && now >= echo_due_) decide(*echo_);
    if (inquiry_ && now >= inquiry_->due()) {
        // Late itself, the hub has not read all the answers that have come.
        if (now - inquiry_->due() < kAnswerTime || !inquiry_->extend(now + kAnswerTime)) conclude(now);
    }
    const Clock::time_point ask_at = ask_wanted(now);

    Pulse::Beat beat = pulse_.tick(now);
    std::vector<int> silent;
    for (size_t rank = 0; beat != Pulse::Beat::none && rank < ranks_.size(); ++rank) {
        Rank& one = ranks_[rank];
        if (one.state != State::present || one.local) continue;
        if (beat == Pulse::Beat::slept) one.heard = now;
        if (pulse_.silent(one.heard, now))
            silent.push_back(static_cast<int>(rank));
        else
            lines_.say(static_cast<int>(rank), {{"say", "beat"}});
    }
    for (int rank : silent) {
        Status gone = failure(ringRemoteError,
                              "{} has not answered for {:.1f} s: its process is stopped, or its host or the network is gone",
                              names_[rank], seconds(now - ranks_[rank].heard));
        // The others know who is lost before they know that this is the end; it is told too, for it may wake up.
        remove(rank, State::lost, "lost");
        if (!verdict_) {
            decide(gone);
            lines_.say(rank, verdict_message());
        }
        lines_.say(rank, {{"say", "bye"}});
        lines_.hang_up(rank);
    }

    Clock::time_point next = std::min(pulse_.next(), ask_at);
    if (echo_) next = std::min(next, echo_due_);
    if (inquiry_) next = std::min(next, inquiry_->due());
    return next;
}

Hub::Clock::time_point Hub::ask_wanted(Clock::time_point now) {
    if (wanted_.empty() || inquiry_) return Clock::time_point::max();
    // The oldest, but for the one asked last: ranks that say again and again that they wait there keep nobody else waiting.
    auto next = wanted_.begin();
    if (asked_ == *next && wanted_.size() > 1) ++next;
    const auto due = asked_ ? asked_at_ + (asked_ == *next ? kSameAgain : kNextQuestion) : now;
    if (now < due) return due;
    ask_all(*next, std::nullopt, now);
    wanted_.erase(next);
    return Clock::time_point::max();
}

void Hub::ask_all(std::optional<uint64_t> sequence, std::optional<Inquiry::Late> late, Clock::time_point now) {
    inquiry_.emplace(ranks_.size(), sequence, std::move(late), now + kAnswerTime);
    asked_ = sequence;
    asked_at_ = now;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
        if (ranks_[rank].state != State::present) continue;
        inquiry_->expect(static_cast<int>(rank));
        if (!ranks_[rank].unanswered) ask(static_cast<int>(rank));
    }
}

void Hub::ask(int rank) {
    json question = {{"say", "ask"}};
    if (inquiry_->sequence()) question["sequence"] = *inquiry_->sequence();
    ranks_[rank].unanswered = true;
    lines_.say(rank, question);
}

void Hub::conclude(Clock::time_point now) {
    const Inquiry inquiry = std::move(*inquiry_);
    inquiry_.reset();
    if (Status mismatch = inquiry.mismatch(); !mismatch.ok()) return decide(mismatch);
    if (inquiry.late()) decide(inquiry.timeout(names_, [&](int rank) { return standing(rank, now); }));
}

std::string Hub::standing(int rank, Clock::time_point now) const {
    switch (ranks_[rank].state) {
        case State::awaited:
            return "has not been tied to the hub";
        case State::left:
            return "has left";
        case State::lost:
            return "has died";
        case State::present:
            break;
    }
    return fmt::format("no answer for {:.1f} s", seconds(now - ranks_[rank].heard));
}

void Hub::decide(Status verdict) {
    if (verdict_) return;
    verdict_ = std::move(verdict);
    echo_.reset();
    inquiry_.reset();
    wanted_.clear();
    say_all(verdict_message());
}

json Hub::verdict_message() const {
    json message = message_of(*verdict_);
    message["say"] = "verdict";
    return message;
}

void Hub::say_all(const json& message) {
    for (size_t rank = 0; rank < ranks_.size(); ++rank)
        if (ranks_[rank].state == State::present) lines_.say(static_cast<int>(rank), message);
}

}  // namespace ringccl
