// What the hub of a communicator makes of what its ranks say: the one verdict that all get. No sockets and no clock of its own:
// it is told what happens and what time it is.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "monitor/inquiry.h"
#include "monitor/pulse.h"

namespace ringccl {

class Hub {
public:
    using Clock = Deadline::Clock;

    // Where the hub speaks. Neither function may call the hub.
    class Lines {
    public:
        virtual void say(int rank, const nlohmann::json& message) = 0;
        // Nothing more is expected from that rank, nor said to it.
        virtual void hang_up(int rank) = 0;

    protected:
        ~Lines() = default;
    };

    // `names` by rank, for texts. `silence`: how long a rank may say nothing; 0: for ever.
    Hub(std::vector<std::string> names, std::chrono::milliseconds silence, Lines& lines, Clock::time_point now);

    // `local`: in the hub's own process, which is never silent by itself.
    void joined(int rank, bool local, Clock::time_point now);
    void hear(int rank, const nlohmann::json& message, Clock::time_point now);
    // A rank's line has ended. `how`, if it is not the plain end of one: "lost its connection (Connection timed out)".
    void ended(int rank, const std::string& how, Clock::time_point now);
    // The hub's process is about to end. If rank 0 has left, the others are told so and go on without a hub; if it has not,
    // nothing is said, and the end of the lines is its death to the others.
    void farewell(Clock::time_point now);

    // Does what is due. Returns when there will be something to do, if nothing else happens; Clock::time_point::max(): never.
    Clock::time_point tick(Clock::time_point now);

    bool joinable(int rank) const;                   // it has not been tied before
    bool complete() const { return awaited_ == 0; }  // all have been tied
    bool empty() const { return present_ == 0; }     // nobody is
    bool has_left(int rank) const { return ranks_[rank].state == State::left; }
    const std::optional<Status>& verdict() const { return verdict_; }

private:
    enum class State { awaited, present, left, lost };
    struct Rank {
        State state = State::awaited;
        bool local = false;
        bool unanswered = false;  // it still owes the answer to a question, and is asked no other until then
        Clock::time_point heard;
    };

    void fail(int rank, const nlohmann::json& message, Clock::time_point now);
    void late(const nlohmann::json& message, Clock::time_point now);
    void wait(const nlohmann::json& message, Clock::time_point now);
    void where(int rank, const nlohmann::json& message);
    void bye(int rank);

    // When the next question is due if ranks wait, which it also asks if that is now.
    Clock::time_point ask_wanted(Clock::time_point now);
    void ask_all(std::optional<uint64_t> sequence, std::optional<Inquiry::Late> late, Clock::time_point now);
    void ask(int rank);
    void conclude(Clock::time_point now);
    void decide(Status verdict);
    nlohmann::json verdict_message() const;
    void remove(int rank, State state, const char* word);
    std::string standing(int rank, Clock::time_point now) const;
    void say_all(const nlohmann::json& message);

    const std::vector<std::string> names_;
    Lines& lines_;
    std::vector<Rank> ranks_;
    size_t awaited_, present_ = 0;
    Pulse pulse_;
    std::optional<Status> verdict_;

    std::optional<Status> echo_;  // held back for a graver cause until echo_due_
    Clock::time_point echo_due_;
    std::optional<Inquiry> inquiry_;
    std::set<uint64_t> wanted_;      // the collectives to ask about
    std::optional<uint64_t> asked_;  // the last one
    Clock::time_point asked_at_;
};

}  // namespace ringccl
