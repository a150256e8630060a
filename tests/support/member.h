// One rank of a test's world, and the verdict of what it saw. Bodies of ranks return verdicts instead of using EXPECT, so that
// the same body runs in a thread or in a process, and so that a rank that failed stops and sets the others free.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "ringccl/ringccl.h"

namespace ringccl::test {

using Verdict = ::testing::AssertionResult;

inline Verdict good() {
    return ::testing::AssertionSuccess();
}

template <class... Args>
Verdict bad(fmt::format_string<Args...> format, Args&&... args) {
    return ::testing::AssertionFailure() << fmt::format(format, std::forward<Args>(args)...);
}

// Whether a call that must succeed did; if not, with the library's own words.
inline Verdict worked(ringResult_t result, const char* call) {
    if (result == ringSuccess) return good();
    return bad("{} gave {}: {}", call, ringGetErrorString(result), ringGetLastError(nullptr));
}

struct Member {
    ringComm_t comm = nullptr;
    int rank = 0;
    int size = 1;
    void* stream = nullptr;
};

using Body = std::function<Verdict(const Member&)>;

// How a world is made.
struct WorldOptions {
    int size = 2;
    const char* transport = "auto";
    const char* algorithm = "auto";
    int timeout_ms = 20000;  // long: a loaded machine must not look like a lost rank

    ringConfig_t config() const {
        ringConfig_t config = RINGCCL_CONFIG_INITIALIZER;
        config.transport = transport;
        config.algorithm = algorithm;
        config.timeoutMs = timeout_ms;
        config.initTimeoutMs = timeout_ms;
        return config;
    }
};

}  // namespace ringccl::test
