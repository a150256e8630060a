#include "support/thread_ranks.h"

#include <thread>
#include <vector>

#include "support/device_side.h"

namespace ringccl::test {

void run_threads(int count, const std::function<Verdict(int)>& body) {
    std::vector<Verdict> verdicts(count, good());
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back([&, i] { verdicts[i] = body(i); });
    for (auto& thread : threads) thread.join();
    for (int i = 0; i < count; ++i) EXPECT_TRUE(verdicts[i]) << "thread " << i << " of " << count;
}

void run_ranks(const WorldOptions& options, const Body& body) {
    ringUniqueId id;
    ASSERT_TRUE(worked(ringGetUniqueId(&id), "ringGetUniqueId"));
    run_threads(options.size, [&](int rank) {
        ringConfig_t config = options.config();
        Member me{nullptr, rank, options.size};
        if (Verdict ready = enter_side(me, config); !ready) return ready;
        Verdict made = worked(ringCommInitRankConfig(&me.comm, me.size, id, rank, &config), "ringCommInitRankConfig");
        if (!made) return made;
        Verdict verdict = body(me);
        if (!verdict) ringCommAbort(me.comm);
        Verdict destroyed = worked(ringCommDestroy(me.comm), "ringCommDestroy");
        return verdict ? destroyed : verdict;
    });
}

}  // namespace ringccl::test
