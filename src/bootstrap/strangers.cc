#include "bootstrap/strangers.h"

#include "bootstrap/listening.h"
#include "trace/log.h"

namespace ringccl {

void Strangers::note(const Endpoint& from, const std::string& why) {
    constexpr size_t kRemembered = 1000;
    count_.fetch_add(1, std::memory_order_relaxed);
    bool first = warned_.size() < kRemembered && warned_.insert(from.address).second;
    log().log(first ? spdlog::level::warn : spdlog::level::debug, "turned away a stranger from {}: {}", to_text(from), why);
}

}  // namespace ringccl
