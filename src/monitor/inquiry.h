// One question to all ranks, where they are, and what follows from their answers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "monitor/lifeline.h"

namespace ringccl {

class Inquiry {
public:
    using Clock = Deadline::Clock;

    // What a rank that waited in vain wants to know.
    struct Late {
        std::string text;
        std::vector<int> peers;
    };

    // About the collective `sequence`, or about point-to-point calls.
    Inquiry(size_t size, std::optional<uint64_t> sequence, std::optional<Late> late, Clock::time_point due);

    std::optional<uint64_t> sequence() const { return sequence_; }
    const std::optional<Late>& late() const { return late_; }
    Clock::time_point due() const { return due_; }
    // Once: the hub itself was late.
    bool extend(Clock::time_point due);

    void expect(int rank);
    void answer(int rank, Whereabouts where);
    void give_up(int rank);  // it has left or died
    bool complete() const { return expected_ == 0; }

    // ringMismatch if two ranks call different things: one of the majority and one that differs from it. ok if none do.
    Status mismatch() const;
    // ringTimeout, in the words of who was late followed by who has not arrived, or by what all do if all have. `names` are the
    // ranks in words, `standing` says why one has not answered ("has left").
    Status timeout(const std::vector<std::string>& names, const std::function<std::string(int)>& standing) const;

private:
    struct Rank {
        bool expected = false;
        std::optional<Whereabouts> where;
    };
    std::string describe(int rank, const std::vector<std::string>& names,
                         const std::function<std::string(int)>& standing) const;

    const std::optional<uint64_t> sequence_;
    const std::optional<Late> late_;
    Clock::time_point due_;
    bool extended_ = false;
    std::vector<Rank> ranks_;
    size_t expected_ = 0;  // answers that are still to come
};

}  // namespace ringccl
