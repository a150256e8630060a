// What processes leave on the machine: nothing under /dev/shm, no descriptors, no mappings, no threads.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "support/case.h"
#include "support/environment.h"
#include "support/process_ranks.h"

namespace ringccl::test {
namespace {

namespace fs = std::filesystem;

// How many of this process's descriptors lead where; socket and pipe numbers are left out.
std::map<std::string, int> descriptors() {
    std::map<std::string, int> found;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
        std::error_code gone;  // the directory's own descriptor
        std::string target = fs::read_symlink(entry, gone).string();
        if (!gone) ++found[target.substr(0, target.find('['))];
    }
    return found;
}

size_t mappings_of(const std::string& what) {
    std::ifstream maps("/proc/self/maps");
    size_t count = 0;
    for (std::string line; std::getline(maps, line);) count += line.find(what) != std::string::npos;
    return count;
}

Verdict nothing_in_dev_shm() {
    if (mappings_of("/dev/shm/") != 0) return bad("something of /dev/shm is mapped");
    for (auto& [target, count] : descriptors())
        if (target.rfind("/dev/shm/", 0) == 0) return bad("{} is open", target);
    return good();
}

struct Holdings {
    std::map<std::string, int> open = descriptors();
    size_t memfds = mappings_of("memfd:");
    ptrdiff_t threads = std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator());

    Verdict at_most(const Holdings& before) const {
        for (auto& [target, count] : open) {
            const auto was = before.open.find(target);
            const int then = was == before.open.end() ? 0 : was->second;
            if (count > then) return bad("{} descriptors of {} became {}", then, target, count);
        }
        if (memfds > before.memfds) return bad("{} memfd mappings became {}", before.memfds, memfds);
        if (threads > before.threads) return bad("{} threads became {}", before.threads, threads);
        return good();
    }
};

class Footprint : public ::testing::TestWithParam<Path> {};

TEST_P(Footprint, IsNothing) {
    ScopedEnv env;
    GetParam().apply(env);
    run_processes({.size = 3, .transport = GetParam().transport}, [](const Member& me) {
        auto round = [&]() -> Verdict {
            ringComm_t comm = nullptr;
            if (Verdict v = worked(ringCommSplit(me.comm, 0, me.rank, &comm, nullptr), "ringCommSplit"); !v) return v;
            void* block = nullptr;
            if (Verdict v = worked(ringMemAlloc(&block, 1 << 20), "ringMemAlloc"); !v) return v;
            auto* data = static_cast<float*>(block);
            ringResult_t done = ringAllReduce(data, data, 1 << 18, ringFloat32, ringSum, comm, nullptr);
            if (Verdict v = worked(done, "ringAllReduce"); !v) return v;
            if (Verdict v = run_case({comm, me.rank, me.size}, {.count = 100003}); !v) return v;
            if (Verdict v = nothing_in_dev_shm(); !v) return v;
            if (Verdict v = worked(ringMemFree(block), "ringMemFree"); !v) return v;
            return worked(ringCommDestroy(comm), "ringCommDestroy");
        };
        // What rank 0 holds for the others' lifelines goes with their goodbyes.
        auto settled = [&](const Holdings& before) {
            Verdict verdict = bad("");
            for (int look = 0; look < 200 && !verdict; ++look) {
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
                verdict = Holdings().at_most(before);
            }
            return verdict;
        };
        if (Verdict v = round(); !v) return v;
        if (Verdict v = worked(ringBarrier(me.comm, nullptr), "ringBarrier"); !v) return v;
        std::this_thread::sleep_for(std::chrono::seconds(1));
        const Holdings before;
        for (int i = 0; i < 20; ++i)
            if (Verdict v = round(); !v) return v;
        return settled(before);
    });
}

INSTANTIATE_TEST_SUITE_P(, Footprint, ::testing::Values(kMemfd, kCma, kTcp),
                         [](const ::testing::TestParamInfo<Path>& info) { return info.param.name; });

// A forked child of a rank cannot use its parent's communicator, is told so, and does the parent no harm.
TEST(Fork, ChildIsRefused) {
    run_processes({.size = 2}, [](const Member& me) {
        if (Verdict v = run_case(me, {.count = 100}); !v) return v;
        Verdict child = judge_processes(1, [&](int) {
            float data = 1;
            ringResult_t result = ringAllReduce(&data, &data, 1, ringFloat32, ringSum, me.comm, nullptr);
            if (result != ringInvalidUsage) return bad("allReduce gave {}", ringGetErrorString(result));
            if (ringCommDestroy(me.comm) != ringInvalidUsage) return bad("destroy was accepted");
            return good();
        });
        if (!child) return child;
        return run_case(me, {.count = 1000});
    });
}

}  // namespace
}  // namespace ringccl::test
