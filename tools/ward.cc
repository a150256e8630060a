#include "ward.h"

#include <algorithm>
#include <set>

namespace ringccl::doctor {
namespace {

constexpr int64_t kHangUs = 1000000;
constexpr size_t kNamed = 8;

}  // namespace

Result<Ward> Ward::of(std::vector<RankDump> dumps, std::vector<std::string>& notes) {
    if (dumps.empty()) return failure(ringInvalidUsage, "there are no dumps");
    Ward ward;
    ward.size = dumps.front().size;
    const std::string communicator = dumps.front().communicator;
    for (RankDump& dump : dumps) {
        if (dump.communicator != communicator)
            return failure(ringInvalidUsage,
                           "the dumps are of several communicators ({} is of {}, others of {}); give those of one", dump.file,
                           dump.communicator, communicator);
        if (dump.size != ward.size)
            return failure(ringInvalidUsage, "{} says that there are {} ranks, others say {}", dump.file, dump.size, ward.size);
        const auto [at, is_new] = ward.dumps.try_emplace(dump.rank);
        if (!is_new) {
            const bool newer = dump.time_us > at->second.time_us;
            notes.push_back(fmt::format("rank {} has several dumps; {} is older and left out", dump.rank,
                                        newer ? at->second.file : dump.file));
            if (!newer) continue;
        }
        at->second = std::move(dump);
    }
    for (int rank = 0; rank < ward.size; ++rank)
        if (!ward.dumps.contains(rank)) ward.missing.push_back(rank);
    return ward;
}

bool Ward::failed() const {
    return std::any_of(dumps.begin(), dumps.end(), [](const auto& each) { return each.second.failure.has_value(); });
}

bool Ward::hangs() const {
    return std::any_of(dumps.begin(), dumps.end(), [](const auto& each) {
        const RecordedOperation* current = each.second.current();
        return current != nullptr && each.second.time_us - current->begin_us > kHangUs;
    });
}

std::vector<int> Ward::waiting_for(int rank) const {
    std::vector<int> waiting;
    for (const auto& [each, dump] : dumps)
        if (const RecordedOperation* current = dump.current(); current != nullptr && current->waits_for == rank)
            waiting.push_back(each);
    return waiting;
}

std::string ranks_text(const std::vector<int>& ranks, int size) {
    if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
    if (static_cast<int>(ranks.size()) == size) return "all ranks";
    if (ranks.size() > kNamed) {
        const std::vector<int> named(ranks.begin(), ranks.begin() + kNamed);
        return fmt::format("ranks {} and {} others", fmt::join(named, ", "), ranks.size() - kNamed);
    }
    const std::vector<int> before(ranks.begin(), ranks.end() - 1);
    return fmt::format("ranks {} and {}", fmt::join(before, ", "), ranks.back());
}

std::string span_text(int64_t us) {
    const auto value = static_cast<double>(us);
    if (us < 1000) return fmt::format("{} us", us);
    if (us < 1000000) return fmt::format("{:.1f} ms", value / 1e3);
    return fmt::format("{:.1f} s", value / 1e6);
}

}  // namespace ringccl::doctor
