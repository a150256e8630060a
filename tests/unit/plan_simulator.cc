#include "plan_simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "plan/pieces.h"

namespace ringccl {
namespace {

struct Token {
    uint64_t ranks = 0;   // bit r: rank r's contribution; none: nothing was ever written here
    size_t index = 0;     // of the element in its owner's send buffer
    bool scaled = false;  // went through a premul scalar
    bool finished = false;

    bool operator==(const Token&) const = default;
};

[[noreturn]] void fail(const std::string& text) {
    throw std::runtime_error(text);
}

void require(bool condition, const char* text) {
    if (!condition) fail(text);
}

uint64_t bit(int rank) {
    return uint64_t{1} << rank;
}
uint64_t everybody(int size) {
    return size == 64 ? ~uint64_t{0} : bit(size) - 1;
}

bool reduces(Kind kind) {
    return kind == Kind::all_reduce || kind == Kind::scatter_reduce || kind == Kind::reduce;
}

class Simulator {
public:
    Simulator(const Scene& scene, const Limits& limits) : scene_(scene), limits_(limits), size_(scene.world.size) {
        int lanes = 0;
        for (int rank = 0; rank < size_; ++rank) {
            buffers_.push_back(buffers_of(scene.shape, size_, rank));
            const Buffers& b = buffers_.back();
            memory_.emplace_back(b.size());
            for (size_t i = 0; i < b.send_size; ++i) memory_[rank][b.send_at + i] = {bit(rank), i};
            for (const Channel& channel : scene.plans[rank].channels) {
                lanes = std::max(lanes, channel.lane + 1);
                cursors_.push_back({rank, &channel});
                enter(cursors_.back(), 0);
            }
        }
        links_.resize(static_cast<size_t>(lanes * size_ * size_));
    }

    void run(Schedule& schedule) {
        std::vector<size_t> order(cursors_.size());
        std::iota(order.begin(), order.end(), 0);
        for (bool moved = true; moved;) {
            moved = false;
            schedule.arrange(order);
            for (size_t i : order) {
                moved |= move(cursors_[i]);
                if (moved && schedule.one_at_a_time) break;
            }
        }
        for (const Cursor& cursor : cursors_) {
            if (!cursor.done) fail(fmt::format("deadlock: rank {} stands at step {}", cursor.rank, cursor.step));
        }
        for (const Link& link : links_) require(link.waiting() == 0, "a message was never taken");
        for (int rank = 0; rank < size_; ++rank) check(rank);
    }

private:
    struct Cursor {
        int rank;
        const Channel* channel;
        size_t phase_begin = 0, phase_end = 0, step = 0, window = 0, slice = 0;
        bool done = false;
    };
    struct Message {
        size_t count = 0;
        size_t at = 0;                           // where it is shown in the sender's memory,
        bool raw = false;                        // as input,
        std::vector<Token> copy = {};            // or what is staged
        std::shared_ptr<int> readers = nullptr;  // of the staged copy, those who have not taken it
    };
    struct Link {
        std::vector<Message> messages = {};
        size_t taken = 0;

        size_t waiting() const { return messages.size() - taken; }
    };

    Link& link(int lane, int from, int to) {
        const size_t n = static_cast<size_t>(size_), f = static_cast<size_t>(from), t = static_cast<size_t>(to);
        return links_[(static_cast<size_t>(lane) * n + f) * n + t];
    }

    const Step& step(const Cursor& c) const { return c.channel->steps[c.step]; }

    size_t windows(const Step& s) const {
        const size_t window = limits_.slice(s.count) * limits_.window;
        return std::max<size_t>(1, (s.count + window - 1) / window);
    }
    size_t slices(const Cursor& c) const {
        const size_t slice = limits_.slice(step(c).count), begin = c.window * slice * limits_.window;
        if (begin >= step(c).count) return c.window == 0 ? 1 : 0;
        return std::min(limits_.window, (step(c).count - begin + slice - 1) / slice);
    }

    // Stands at the first step from `next` on that has something to do.
    void enter(Cursor& c, size_t next) {
        const std::vector<Step>& steps = c.channel->steps;
        for (c.step = next, c.slice = 0;; ++c.step) {
            if (c.step == c.phase_end) {
                size_t most = 0;
                for (size_t i = c.phase_begin; i < c.phase_end; ++i) most = std::max(most, windows(steps[i]));
                if (++c.window < most) {
                    c.step = c.phase_begin;
                } else if (c.phase_end == steps.size()) {
                    c.done = true;
                    return;
                } else {
                    c.phase_begin = c.phase_end, c.window = 0;
                    while (c.phase_end < steps.size() && steps[c.phase_end].phase == steps[c.phase_begin].phase) ++c.phase_end;
                }
            }
            if (slices(c) > 0) return;
        }
    }

    // One slice, if everything that it needs is there.
    bool move(Cursor& c) {
        if (c.done) return false;
        const Step& s = step(c);
        const int lane = c.channel->lane;
        for (int from : s.sources) {
            if (link(lane, from, c.rank).waiting() == 0) return false;
        }
        for (int to : s.sinks) {
            if (link(lane, c.rank, to).waiting() >= limits_.depth) return false;
        }
        // Without a place of its own a result lives in the stage.
        const bool staged =
            !s.sinks.empty() && (s.stage || limits_.stage_everything || (!s.dest.exists() && !s.sources.empty()));
        std::deque<std::shared_ptr<int>>& stage = stages_[{c.rank, lane}];
        while (!stage.empty() && *stage.front() == 0) stage.pop_front();
        const size_t room = limits_.window * static_cast<size_t>(scene_.plans[c.rank].burst) + 1;
        if (staged && limits_.bounded_stage && stage.size() >= room) return false;

        const size_t slice = limits_.slice(s.count), begin = (c.window * limits_.window + c.slice) * slice;
        const size_t count = begin >= s.count ? 0 : std::min(slice, s.count - begin);
        std::vector<Token> result = combine(c, s, begin, count);
        if (s.dest.exists()) {
            std::copy(result.begin(), result.end(), memory_[c.rank].begin() + static_cast<ptrdiff_t>(at(c, s.dest) + begin));
        }
        Message message{.count = count};
        if (staged) {
            message.copy = std::move(result);
            message.readers = std::make_shared<int>(static_cast<int>(s.sinks.size()));
            stage.push_back(message.readers);
        } else {
            // A rank's own operand is shown where it is, whether or not it is also put somewhere.
            const Region& shown = s.sources.empty() || !s.dest.exists() ? s.local : s.dest;
            message.at = at(c, shown) + begin;
            message.raw = shown.buffer == Buffer::send;
        }
        for (int to : s.sinks) link(lane, c.rank, to).messages.push_back(message);
        if (++c.slice == slices(c)) enter(c, c.step + 1);
        return true;
    }

    size_t at(const Cursor& c, const Region& region) const { return region.exists() ? buffers_[c.rank].at(region) : 0; }

    std::vector<Token> combine(const Cursor& c, const Step& s, size_t begin, size_t count) {
        std::vector<std::vector<Token>> operands;
        for (int from : s.sources) {
            Link& in = link(c.channel->lane, from, c.rank);
            const Message message = std::move(in.messages[in.taken++]);
            require(message.count == count, "a slice of another size than expected");
            operands.push_back(message.readers ? message.copy : read(from, message.at, count, message.raw));
            if (message.readers) --*message.readers;
        }
        if (s.local.exists()) {
            operands.push_back(read(c.rank, at(c, s.local) + begin, count, s.local.buffer == Buffer::send));
        }
        std::vector<Token> result(count);
        if (count == 0) return result;
        require(!operands.empty() && (s.reduce || operands.size() == 1), "a copy of more or less than one operand");
        const bool reduction = reduces(scene_.shape.kind);
        for (size_t i = 0; i < count; ++i) {
            Token& sum = result[i] = operands[0][i];
            for (size_t k = 0; k < operands.size(); ++k) {
                const Token& token = operands[k][i];
                require(token.ranks != 0, "memory is read that nobody wrote");
                if (!s.reduce) continue;
                require(!token.finished, "a finished result is combined again");
                require(token.index == sum.index, "different elements are combined");
                const bool single = (token.ranks & (token.ranks - 1)) == 0;
                require(single || !needs_all_inputs(scene_.shape), "a partial sum travelled in an integer average");
                require(k == 0 || (sum.ranks & token.ranks) == 0, "a contribution is counted twice");
                sum.ranks |= token.ranks;
            }
            if (!s.finish) continue;
            require(reduction && !sum.finished && sum.ranks == everybody(size_), "finished before all contributed");
            sum.finished = true;
        }
        return result;
    }

    // The engine multiplies input by its scalar as it reads it; a partial sum must have been through that already.
    std::vector<Token> read(int rank, size_t at, size_t count, bool raw) const {
        const auto from = memory_[rank].begin() + static_cast<ptrdiff_t>(at);
        std::vector<Token> tokens(from, from + static_cast<ptrdiff_t>(count));
        if (!reduces(scene_.shape.kind)) return tokens;
        for (Token& token : tokens) {
            require(token.scaled != raw, raw ? "a partial result is read as input" : "input is read as a partial result");
            token.scaled = true;
        }
        return tokens;
    }

    // What the API promises for recv[i].
    Token promised(int rank, size_t i) const {
        const Shape& shape = scene_.shape;
        const uint64_t all = everybody(size_);
        // One rank's sum is a plain copy, which the plan need not mark.
        const bool finished = size_ > 1 || shape.op == Op::avg || shape.op == Op::premul;
        const size_t block = shape.count == 0 ? 0 : i / shape.count, within = shape.count == 0 ? 0 : i % shape.count;
        const size_t mine = static_cast<size_t>(rank) * shape.count;
        switch (shape.kind) {
            case Kind::all_reduce:
            case Kind::reduce:
                return {all, i, true, finished};
            case Kind::scatter_reduce:
                return {all, mine + i, true, finished};
            case Kind::broadcast:
                return {bit(shape.root), i};
            case Kind::scatter:
                return {bit(shape.root), mine + i};
            case Kind::all_to_all:
                return {bit(static_cast<int>(block)), mine + within};
            default:  // all_gather, gather
                return {bit(static_cast<int>(block)), within};
        }
    }

    void check(int rank) const {
        const Buffers& b = buffers_[rank];
        for (size_t i = 0; i < b.recv_size; ++i) {
            const Token want = promised(rank, i);
            const Token& have = memory_[rank][b.recv_at + i];
            if (!(have == want)) {
                fail(fmt::format("rank {}: recv[{}] holds element {} of ranks {:#x} (finished {}), not element {} of {:#x}",
                                 rank, i, have.index, have.ranks, have.finished, want.index, want.ranks));
            }
        }
        if (scene_.shape.in_place) return;
        for (size_t i = 0; i < b.send_size; ++i) {
            require(memory_[rank][b.send_at + i] == Token{bit(rank), i}, "the send buffer was written to");
        }
    }

    const Scene& scene_;
    const Limits& limits_;
    const int size_;
    std::vector<Buffers> buffers_;
    std::vector<std::vector<Token>> memory_;
    std::vector<Cursor> cursors_;
    std::vector<Link> links_;                                                 // by lane, from, to
    std::map<std::pair<int, int>, std::deque<std::shared_ptr<int>>> stages_;  // rank, lane
};

}  // namespace

Schedule in_order() {
    return {[](std::vector<size_t>&) {}, false};
}

Schedule at_random(unsigned seed) {
    return {[random = std::mt19937(seed)](std::vector<size_t>& order) mutable {  // Favourites stay so for a while: that drives
                                                                                 // ranks further apart than fair chances would.
                if (random() % 8 == 0) std::shuffle(order.begin(), order.end(), random);
            },
            true};
}

Schedule with_last(size_t rank, size_t size) {
    return {[=](std::vector<size_t>& order) {
                // Plans of one channel a rank: cursor and rank are the same number.
                for (size_t i = 0; i < size; ++i) order[i] = (rank + 1 + i) % size;
            },
            true};
}

std::string simulate(const Scene& scene, const Limits& limits, Schedule schedule) {
    try {
        Simulator(scene, limits).run(schedule);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "";
}

}  // namespace ringccl
