// Who was turned away.
#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <string>

#include "bootstrap/door.h"

namespace ringccl {

class Strangers {
public:
    // Counts one and logs it: a warning the first time for an address, then at debug level, so that a scanner which comes back
    // every second does not fill the log.
    void note(const Endpoint& from, const std::string& why);
    uint64_t count() const { return count_.load(std::memory_order_relaxed); }

private:
    std::atomic<uint64_t> count_{0};
    std::set<std::string> warned_;
};

}  // namespace ringccl
