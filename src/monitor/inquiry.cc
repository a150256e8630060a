#include "monitor/inquiry.h"

#include <algorithm>
#include <utility>

namespace ringccl {
namespace {

constexpr size_t kMostListed = 16;  // ranks in one sentence

template <class Word>
std::string listed(const std::vector<int>& ranks, const char* separator, Word word) {
    std::string text;
    for (size_t i = 0; i < std::min(ranks.size(), kMostListed); ++i) text += (i == 0 ? "" : separator) + word(ranks[i]);
    if (ranks.size() > kMostListed) text += fmt::format(" and {} more", ranks.size() - kMostListed);
    return text;
}

}  // namespace

Inquiry::Inquiry(size_t size, std::optional<uint64_t> sequence, std::optional<Late> late, Clock::time_point due)
    : sequence_(sequence), late_(std::move(late)), due_(due), ranks_(size) {}

bool Inquiry::extend(Clock::time_point due) {
    if (std::exchange(extended_, true)) return false;
    due_ = due;
    return true;
}

void Inquiry::expect(int rank) {
    if (!std::exchange(ranks_[rank].expected, true)) ++expected_;
}

void Inquiry::answer(int rank, Whereabouts where) {
    give_up(rank);
    ranks_[rank].where = std::move(where);
}

void Inquiry::give_up(int rank) {
    if (std::exchange(ranks_[rank].expected, false)) --expected_;
}

Status Inquiry::mismatch() const {
    struct Camp {
        const Fingerprint* print;
        int first;  // rank
        int size;
    };
    std::vector<Camp> camps;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
        const auto& where = ranks_[rank].where;
        if (!where || !where->asked) continue;
        auto camp = std::find_if(camps.begin(), camps.end(), [&](const Camp& one) { return *one.print == *where->asked; });
        if (camp == camps.end())
            camps.push_back({&*where->asked, static_cast<int>(rank), 1});
        else
            ++camp->size;
    }
    if (camps.size() < 2) return {};
    // Of equally large ones the one with the lowest rank is taken for the majority.
    auto smaller = [](const Camp& a, const Camp& b) { return a.size < b.size; };
    auto most = std::max_element(camps.begin(), camps.end(), smaller);
    std::swap(*most, camps.front());
    auto few = std::min_element(camps.begin() + 1, camps.end(), smaller);
    return disagreement(camps.front().first, *camps.front().print, few->first, *few->print);
}

// "rank 3 (process 4711 on node7; last completed: operation 12; between operations)"
std::string Inquiry::describe(int rank, const std::vector<std::string>& names,
                              const std::function<std::string(int)>& standing) const {
    const auto& where = ranks_[rank].where;
    std::string state;
    if (!where)
        state = standing(rank);
    else if (!where->doing.empty())
        state = "in " + where->doing;
    else if (where->begun == 0)
        state = "last completed: none; between operations";
    else
        state = fmt::format("last completed: operation {}; between operations", where->begun - 1);
    const std::string& name = names[rank];
    if (name.ends_with(')')) return fmt::format("{}; {})", name.substr(0, name.size() - 1), state);
    return fmt::format("{} ({})", name, state);
}

Status Inquiry::timeout(const std::vector<std::string>& names, const std::function<std::string(int)>& standing) const {
    auto word = [&](int rank) { return describe(rank, names, standing); };
    if (!sequence_) {
        if (late_->peers.empty()) return {ringTimeout, late_->text};
        return failure(ringTimeout, "{}; waited for: {}", late_->text, listed(late_->peers, ", ", word));
    }
    std::vector<int> missing, all;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
        all.push_back(static_cast<int>(rank));
        if (!ranks_[rank].where || ranks_[rank].where->begun <= *sequence_) missing.push_back(static_cast<int>(rank));
    }
    if (!missing.empty()) return failure(ringTimeout, "{}; not arrived: {}", late_->text, listed(missing, ", ", word));
    return failure(ringTimeout, "{}; all ranks have arrived: {}", late_->text, listed(all, "; ", [&](int rank) {
                       const std::string& doing = ranks_[rank].where->doing;
                       return fmt::format("rank {} is {}", rank, doing.empty() ? "between operations" : "in " + doing);
                   }));
}

}  // namespace ringccl
