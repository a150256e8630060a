// A rank may finish an operation, destroy its communicator and exit before its peers have read what it sent last: they must
// still find it.
#include <unistd.h>

#include <cstring>
#include <vector>

#include "support/environment.h"
#include "support/process_ranks.h"

namespace ringccl::test {
namespace {

// Inside a message's own cache lines, and through the stage: what is larger is held until the peer has taken it.
constexpr size_t kSizes[] = {1, 80, 8192};

Verdict late_reader(const Member& me, size_t bytes) {
    std::vector<unsigned char> data(bytes, me.rank == 0 ? 0xa5 : 0);
    if (me.rank != 0) usleep(200 * 1000);  // by now the root is gone
    if (Verdict v = worked(ringBroadcast(data.data(), data.data(), bytes, ringUint8, 0, me.comm, nullptr), "ringBroadcast"); !v)
        return v;
    for (size_t i = 0; i < bytes; ++i)
        if (data[i] != 0xa5) return bad("byte {} of {} from a rank that has gone is {:#x}", i, bytes, data[i]);
    return good();
}

TEST(LastWords, OutliveTheirRank) {
    for (const Path& path : {kMemfd, kCma, kTcp}) {
        for (size_t bytes : kSizes) {
            SCOPED_TRACE(fmt::format("{} {} bytes", path.name, bytes));
            ScopedEnv env;
            path.apply(env);
            run_processes({.size = 3, .transport = path.transport, .timeout_ms = 5000},
                          [&](const Member& me) { return late_reader(me, bytes); });
        }
    }
}

}  // namespace
}  // namespace ringccl::test
