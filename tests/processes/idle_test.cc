// A job that waits costs no CPU: neither the ranks, which compute or sleep outside the library, nor the monitor that watches
// over them.
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "support/case.h"
#include "support/environment.h"
#include "support/process_ranks.h"

namespace ringccl::test {
namespace {

double cpu_seconds() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// Three seconds of 64 ranks; rank 0 has the hub with 63 lifelines. A monitor that looked around once a millisecond would take a
// hundred times what is allowed.
TEST(Idle, CostsNothing) {
    const int ranks = quick() ? 8 : 64;
    run_processes({.size = ranks, .timeout_ms = 60000}, [](const Member& me) {
        if (Verdict v = run_case(me, {.count = 100}); !v) return v;
        std::this_thread::sleep_for(std::chrono::seconds(2));  // the others' last steps
        const double before = cpu_seconds();
        std::this_thread::sleep_for(std::chrono::seconds(3));
        const double used = cpu_seconds() - before;
        if (used > 0.01) return bad("rank {} used {:.4f} s of CPU in 3 s", me.rank, used);
        return run_case(me, {.count = 100});
    });
}

}  // namespace
}  // namespace ringccl::test
