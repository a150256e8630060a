#include "straggler.h"

#include <algorithm>

namespace ringccl::doctor {
namespace {

constexpr size_t kFewest = 8;  // operations that say something
constexpr size_t kMost = 64;
constexpr double kNearlyAll = 0.8;
constexpr int64_t kLateUs = 1000;

int64_t median(std::vector<int64_t> values) {
    const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace

std::optional<Straggler> straggler(const Ward& ward) {
    if (ward.dumps.size() < 2) return std::nullopt;
    struct Late {
        std::vector<int64_t> by_us;       // where it was last: how long after the median of the others
        std::vector<int64_t> shorter_us;  // and how much sooner after its begin it was done than they
    };
    std::map<int, Late> last;
    size_t operations = 0;
    const auto& recent = ward.dumps.begin()->second.operations;
    for (auto newest = recent.rbegin(); newest != recent.rend() && operations < kMost; ++newest) {
        const RecordedOperation& each = *newest;
        if (each.pair() || !each.finished()) continue;
        std::vector<std::pair<int64_t, int>> begins;
        std::map<int, int64_t> took;
        for (const auto& [rank, dump] : ward.dumps) {
            const RecordedOperation* operation = dump.collective(each.sequence);
            if (operation == nullptr || !operation->finished()) break;
            begins.emplace_back(operation->begin_us, rank);
            took[rank] = *operation->end_us - operation->begin_us;
        }
        if (begins.size() != ward.dumps.size()) continue;
        ++operations;
        const auto [begin, rank] = *std::max_element(begins.begin(), begins.end());
        std::vector<int64_t> other_begins, other_spans;
        for (const auto& [at, other] : begins) {
            if (other == rank) continue;
            other_begins.push_back(at);
            other_spans.push_back(took[other]);
        }
        last[rank].by_us.push_back(begin - median(other_begins));
        last[rank].shorter_us.push_back(median(other_spans) - took[rank]);
    }
    const bool one_host = std::all_of(ward.dumps.begin(), ward.dumps.end(),
                                      [&](const auto& each) { return each.second.host == ward.dumps.begin()->second.host; });
    for (const auto& [rank, late] : last) {
        if (operations < kFewest || static_cast<double>(late.by_us.size()) < kNearlyAll * static_cast<double>(operations))
            continue;
        const int64_t by = median(late.by_us);
        if (by < kLateUs) continue;
        // Clocks of two hosts differ; but who really comes late waits less than the others.
        if (!one_host && median(late.shorter_us) < by / 2) continue;
        return Straggler{rank,
                         fmt::format("nobody has failed, but rank {} is late: it began {} of the last {} operations last, {} "
                                     "after the others (median)",
                                     rank, late.by_us.size(), operations, span_text(by))};
    }
    return std::nullopt;
}

}  // namespace ringccl::doctor
