// Counts beyond 2^32: whatever is kept in 32 bits on the way fails here.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "support/environment.h"
#include "support/thread_ranks.h"

namespace ringccl::test {
namespace {

constexpr size_t kCount = (size_t(1) << 32) + 4099;  // uint8: as many bytes, per rank

size_t available_bytes() {
    std::ifstream meminfo("/proc/meminfo");
    for (std::string line; std::getline(meminfo, line);)
        if (line.rfind("MemAvailable:", 0) == 0) return std::stoull(line.substr(13)) * 1024;
    return 0;
}

// Repeats every 65521 elements (a prime), so no two slices or chunks hold the same.
uint8_t input(int rank, size_t i) {
    return uint8_t(i % 65521 * 7 + rank * 3);
}

class Large : public ::testing::TestWithParam<const char*> {};

TEST_P(Large, AllReduceAndBroadcast) {
    if (quick()) GTEST_SKIP() << "too slow for a quick run";
    if (available_bytes() < 2 * kCount + (size_t(1) << 30))
        GTEST_SKIP() << "needs 9 GiB of memory, " << (available_bytes() >> 30) << " are available";
    run_ranks({.size = 2, .transport = GetParam()}, [](const Member& me) {
        std::vector<uint8_t> data(kCount);
        for (size_t i = 0; i < kCount; ++i) data[i] = input(me.rank, i);
        ringResult_t result = ringAllReduce(data.data(), data.data(), kCount, ringUint8, ringSum, me.comm, nullptr);
        if (Verdict v = worked(result, "ringAllReduce"); !v) return v;
        for (size_t i = 0; i < kCount; ++i)
            if (data[i] != uint8_t(input(0, i) + input(1, i))) return bad("allReduce: element {} is {}", i, int(data[i]));

        if (me.rank == 0) std::fill(data.begin(), data.end(), 0);
        result = ringBroadcast(data.data(), data.data(), kCount, ringUint8, 1, me.comm, nullptr);
        if (Verdict v = worked(result, "ringBroadcast"); !v) return v;
        for (size_t i = 0; i < kCount; ++i)
            if (data[i] != uint8_t(input(0, i) + input(1, i))) return bad("broadcast: element {} is {}", i, int(data[i]));
        return good();
    });
}

INSTANTIATE_TEST_SUITE_P(, Large, ::testing::Values("p2p", "tcp"), [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace ringccl::test
