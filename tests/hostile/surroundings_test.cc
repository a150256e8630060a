// Jobs in surroundings that are not as the library would like them: signals, small limits, missing devices and system calls,
// slow CPUs. They work, or every rank gets an error that says what is missing.
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/deadline.h"
#include "crew.h"
#include "forbidden.h"
#include "support/case.h"
#include "support/environment.h"
#include "support/process_ranks.h"

namespace ringccl::test {
namespace {

namespace fs = std::filesystem;

constexpr int kSize = 3;

int rounds() {
    return quick() ? 2 : 6;
}

// What may come of a job with something wrong in the surroundings of rank 1.
enum class Hope {
    works,   // all is well
    refused  // the communicator cannot be made: rank 1 says ringSystemError with `word`, the others name rank 1
};

struct Trouble {
    std::function<Verdict()> make;
    Hope hope = Hope::works;
    const char* word = "";
};

Verdict run_with_trouble(const char* transport, const Trouble& trouble) {
    Crew crew;
    return judge_processes(kSize, [&](int rank) -> Verdict {
        ringUniqueId id;
        if (Verdict v = crew.share_id(rank, id); !v) return v;
        ++crew->arrived[Crew::joining];
        await([&] { return crew->arrived[Crew::joining] == kSize; }, 30000);
        if (rank == 1)
            if (Verdict v = trouble.make(); !v) return v;
        ringConfig_t config = RINGCCL_CONFIG_INITIALIZER;
        config.transport = transport;
        config.initTimeoutMs = 20000;
        config.timeoutMs = 20000;
        Member me{nullptr, rank, kSize};
        const auto began = Deadline::Clock::now();
        const ringResult_t result = ringCommInitRankConfig(&me.comm, kSize, id, rank, &config);
        const std::string text = ringGetLastError(nullptr);
        const std::string all = fmt::format("gave {}: {}", ringGetErrorString(result), text);
        if (result == ringSuccess) {
            if (trouble.hope == Hope::refused) return bad("succeeded although {} is refused", trouble.word);
            if (Verdict v = mixture(me, 3); !v) return v;
            return worked(ringCommDestroy(me.comm), "ringCommDestroy");
        }
        if (trouble.hope == Hope::works) return bad("{}", all);
        if (Deadline::Clock::now() - began > std::chrono::seconds(15)) return bad("only after 15 s: {}", all);
        const bool right = rank == 1 ? result == ringSystemError && text.find(trouble.word) != std::string::npos
                                     : result == ringRemoteError && text.find("rank 1") != std::string::npos;
        return right ? good() : bad("{}", all);
    });
}

// The same where it is open how far the job gets: whatever fails says so with a text, within the job's own limits, and nothing
// is computed wrongly.
Verdict run_with_shortage(const char* transport, const std::function<Verdict()>& shortage) {
    Crew crew;
    return judge_processes(
        kSize,
        [&](int rank) -> Verdict {
            ringUniqueId id;
            if (Verdict v = crew.share_id(rank, id); !v) return v;
            ++crew->arrived[Crew::joining];
            await([&] { return crew->arrived[Crew::joining] == kSize; }, 30000);
            if (rank == 1)
                if (Verdict v = shortage(); !v) return v;
            ringConfig_t config = RINGCCL_CONFIG_INITIALIZER;
            config.transport = transport;
            config.initTimeoutMs = 1500;
            config.timeoutMs = 1500;
            Member me{nullptr, rank, kSize};
            ringResult_t result = ringCommInitRankConfig(&me.comm, kSize, id, rank, &config);
            if (result == ringSuccess) {
                Verdict v = mixture(me, 3);
                ringCommDestroy(me.comm);
                // An error is allowed, a wrong result is not.
                if (!v && std::string_view(v.message()).find(" gave ring") == std::string_view::npos) return v;
                return good();
            }
            const std::string text = ringGetLastError(nullptr);
            for (ringResult_t allowed : {ringSystemError, ringRemoteError, ringTimeout})
                if (result == allowed && !text.empty()) return good();
            return bad("gave {}: {}", ringGetErrorString(result), text);
        },
        60);
}

class Surroundings : public ::testing::TestWithParam<Path> {
protected:
    void SetUp() override {
        GetParam().apply(env_);
        env_.set("RINGCCL_LOG", "off");
    }
    WorldOptions world() const { return {.size = kSize, .transport = GetParam().transport, .timeout_ms = 60000}; }
    ScopedEnv env_;
};

INSTANTIATE_TEST_SUITE_P(, Surroundings, ::testing::Values(kTcp, kMemfd, kCma),
                         [](const ::testing::TestParamInfo<Path>& info) { return info.param.name; });

volatile sig_atomic_t alarms = 0;

// Every system call of the ranks is interrupted all the time, and none is restarted.
TEST_P(Surroundings, AThousandSignalsASecond) {
    Crew crew;
    auto start = [](int) {
        struct sigaction action {};
        action.sa_handler = [](int) { alarms = alarms + 1; };
        sigaction(SIGALRM, &action, nullptr);
        itimerval every = {{0, 1000}, {0, 1000}};
        return setitimer(ITIMER_REAL, &every, nullptr) == 0 ? good() : bad("no timer");
    };
    auto body = [](const Member& me) -> Verdict {
        if (Verdict v = mixture(me, rounds()); !v) return v;
        ringStream_t stream = nullptr;
        if (Verdict v = worked(ringStreamCreate(&stream), "ringStreamCreate"); !v) return v;
        Member on_stream = me;
        on_stream.stream = stream;
        if (Verdict v = mixture(on_stream, rounds()); !v) return v;
        if (Verdict v = worked(ringStreamDestroy(stream), "ringStreamDestroy"); !v) return v;
        return alarms > 20 ? good() : bad("only {} alarms", int(alarms));
    };
    auto late = [](int rank) {
        if (rank == 2) rest(300);
        return good();
    };
    EXPECT_TRUE(crew.run({.world = world(), .first = start, .before = late, .body = body}));
}

TEST_P(Surroundings, SixtyFourDescriptors) {
    Crew crew;
    auto limit = [](int) {
        rlimit few = {64, 64};
        return setrlimit(RLIMIT_NOFILE, &few) == 0 ? good() : bad("setrlimit");
    };
    EXPECT_TRUE(crew.run({.world = world(), .first = limit, .body = [](const Member& me) { return mixture(me, rounds()); }}));
}

// From too few for anything to just enough.
TEST_P(Surroundings, FewDescriptors) {
    for (int limit : quick() ? std::vector{12, 16} : std::vector{12, 14, 16, 20, 26}) {
        SCOPED_TRACE(limit);
        EXPECT_TRUE(run_with_shortage(GetParam().transport, [&] {
            rlimit few = {rlim_t(limit), rlim_t(limit)};
            return setrlimit(RLIMIT_NOFILE, &few) == 0 ? good() : bad("setrlimit");
        }));
    }
}

// Nothing under /dev at all; a /dev/shm without room.
TEST_P(Surroundings, NoDevices) {
    for (auto [where, options] : {std::pair("/dev", "size=64k"), std::pair("/dev/shm", "size=4k,nr_inodes=2")}) {
        SCOPED_TRACE(where);
        Crew crew;
        auto hide = [&, where = where, options = options](int) -> Verdict {
            if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                mount("tmpfs", where, "tmpfs", 0, options) != 0) {
                crew->word[0] = errno;
                return bad("mount: {}", std::strerror(errno));
            }
            return good();
        };
        Verdict v = crew.run({.world = world(), .first = hide, .body = [](const Member& me) { return mixture(me, rounds()); }});
        if (!v && crew->word[0] == EPERM) GTEST_SKIP() << "no mount namespaces here (it takes root)";
        EXPECT_TRUE(v);
    }
}

struct Refusal {
    const char* name;
    int number;
    int error;
    enum { replaceable, needed, muting } part;  // muting: without it a rank cannot even tell the others
};

// One rank cannot make a system call that containers or kernels may refuse. What has a substitute works without; memfd_create
// has none: shared memory is made of it, and the results that wait for a peer lie in it over TCP too.
TEST_P(Surroundings, RefusedSystemCalls) {
    const Refusal refusals[] = {
        {"process_vm_readv", SYS_process_vm_readv, EPERM, Refusal::replaceable},
        {"membarrier", SYS_membarrier, EPERM, Refusal::replaceable},
        {"madvise", SYS_madvise, EPERM, Refusal::replaceable},
        {"sched_getaffinity", SYS_sched_getaffinity, EPERM, Refusal::replaceable},
        {"sched_yield", SYS_sched_yield, EPERM, Refusal::replaceable},
        {"timerfd_create", SYS_timerfd_create, ENOSYS, Refusal::replaceable},
        {"memfd_create", SYS_memfd_create, EPERM, Refusal::needed},
        {"epoll_create1", SYS_epoll_create1, EPERM, Refusal::muting},
        {"getrandom", SYS_getrandom, ENOSYS, Refusal::muting},
    };
    for (const Refusal& refusal : refusals) {
        SCOPED_TRACE(refusal.name);
        auto refuse = [&] { return forbid(refusal.number, refusal.error); };
        Verdict v =
            refusal.part == Refusal::muting
                ? run_with_shortage(GetParam().transport, refuse)
                : run_with_trouble(GetParam().transport,
                                   {refuse, refusal.part == Refusal::needed ? Hope::refused : Hope::works, refusal.name});
        if (!v && std::string(v.message()).find("no seccomp") != std::string::npos) GTEST_SKIP() << v.message();
        EXPECT_TRUE(v);
    }
}

size_t address_space() {
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}
Verdict limit_memory(size_t more) {
    rlimit limit = {address_space() + more, RLIM_INFINITY};
    return setrlimit(RLIMIT_AS, &limit) == 0 ? good() : bad("setrlimit: {}", std::strerror(errno));
}

// One rank has no memory for a communicator. With less than this the C library itself ends the process: there is no room for a
// stack to grow or for a thread's destructors.
TEST_P(Surroundings, NoMemoryToJoin) {
    for (size_t kib : {1024, 4096, 6144}) {
        SCOPED_TRACE(kib);
        EXPECT_TRUE(run_with_shortage(GetParam().transport, [&] { return limit_memory(kib * 1024); }));
    }
}

// Memory runs out at work, in one rank: calls that need much say so; if that spoils an operation, the others hear of it.
// (Without any memory at all the C library ends the process.)
TEST_P(Surroundings, NoMemoryAtWork) {
    Crew crew;
    auto body = [&](const Member& me) -> Verdict {
        if (Verdict v = mixture(me, 1); !v) return v;
        std::vector<float> data(1 << 20, 1.0f);
        if (me.rank == 1) {
            if (Verdict v = limit_memory(256 << 10); !v) return v;
            void* block = nullptr;
            ringResult_t result = ringMemAlloc(&block, size_t{1} << 30);
            if (result != ringSystemError) return bad("ringMemAlloc of 1 GiB gave {}", ringGetErrorString(result));
        }
        // What was made before still works; that a program for a new shape does is not promised.
        for (size_t count : {size_t{150}, data.size(), size_t{160}}) {
            ringResult_t result = ringAllReduce(data.data(), data.data(), count, ringFloat32, ringMax, me.comm, nullptr);
            if (result == ringSuccess) continue;
            const std::string text = ringGetLastError(nullptr);
            if (me.rank == 1 ? result == ringSystemError
                             : (result == ringRemoteError && text.find("rank 1") != std::string::npos))
                return good();
            return bad("gave {}: {}", ringGetErrorString(result), text);
        }
        return good();
    };
    EXPECT_TRUE(crew.run(
        {.world = {.size = kSize, .transport = GetParam().transport, .algorithm = "ring", .timeout_ms = 10000}, .body = body}));
}

// A control group, of version 1 or 2, with one limit set.
class ControlGroup {
public:
    struct Limit {
        const char *file, *value;
    };
    ControlGroup(const char* controller, Limit version_1, Limit version_2) {
        const fs::path root = "/sys/fs/cgroup";
        for (const auto& [place, limit] : {std::pair(root / controller, version_1), std::pair(root, version_2)}) {
            const fs::path group = place / fmt::format("ringccl-test-{}", getpid());
            std::error_code failed;
            if (!fs::exists(place / "cgroup.procs") || !fs::create_directory(group, failed)) continue;
            group_ = group;
            if (write(limit.file, limit.value)) return;
            rmdir(group.c_str());
            group_.clear();
        }
    }
    ControlGroup(const ControlGroup&) = delete;
    ControlGroup& operator=(const ControlGroup&) = delete;
    ~ControlGroup() {
        // The kernel keeps a group while its last processes are going.
        if (!group_.empty()) await([&] { return rmdir(group_.c_str()) == 0; }, 5000);
    }
    bool there() const { return !group_.empty(); }
    Verdict enter() const {
        return write("cgroup.procs", std::to_string(getpid())) ? good() : bad("cannot enter {}", group_.string());
    }

    // How often its processes have had to wait for more of a CPU.
    uint64_t times_throttled() const {
        std::ifstream stat(group_ / "cpu.stat");
        std::string word;
        uint64_t number = 0;
        while (stat >> word >> number)
            if (word == "nr_throttled") return number;
        return 0;
    }

private:
    bool write(const char* file, const std::string& text) const {
        if (!fs::exists(group_ / file)) return false;
        std::ofstream out(group_ / file);
        out << text;
        return bool(out.flush());
    }
    fs::path group_;
};

TEST_P(Surroundings, AFifthOfACpu) {
    ControlGroup group("cpu", {"cpu.cfs_quota_us", "20000"}, {"cpu.max", "20000 100000"});
    if (!group.there()) GTEST_SKIP() << "no control group for CPUs can be made here";
    Crew crew;
    auto body = [&](const Member& me) -> Verdict {
        // Equally often on all ranks, as the first has said.
        for (int32_t more = 1; more != 0;) {
            if (Verdict v = mixture(me, 1); !v) return v;
            more = group.times_throttled() < 3;
            if (Verdict v = worked(ringBroadcast(&more, &more, 1, ringInt32, 0, me.comm, nullptr), "ringBroadcast"); !v)
                return v;
        }
        return good();
    };
    EXPECT_TRUE(crew.run({.world = world(), .first = [&](int) { return group.enter(); }, .body = body}));
}

constexpr const char* kGroupMemory = "67108864";

ControlGroup memory_group() {
    return {"memory", {"memory.limit_in_bytes", kGroupMemory}, {"memory.max", kGroupMemory}};
}

// What is shared counts once: three ranks have room in 64 MiB.
TEST_P(Surroundings, AMemoryLimitForAll) {
    ControlGroup group = memory_group();
    if (!group.there()) GTEST_SKIP() << "no control group for memory can be made here";
    Crew crew;
    EXPECT_TRUE(crew.run({.world = world(),
                          .first = [&](int) { return group.enter(); },
                          .body =
                              [](const Member& me) {
                                  if (Verdict v = mixture(me, rounds()); !v) return v;
                                  return run_case(me, {.count = 1 << 20, .in_place = true});
                              }}));
}

// The kernel kills a rank that wants more, without a word to anybody: the others hear who died.
TEST_P(Surroundings, KilledByTheMemoryLimit) {
    ControlGroup group = memory_group();
    if (!group.there()) GTEST_SKIP() << "no control group for memory can be made here";
    Crew crew;
    auto eat = [](const Member& me) -> Verdict {
        for (int mib = 0; mib < 256; ++mib) {
            std::memset(new char[1 << 20], 1, 1 << 20);
            if (ringBarrier(me.comm, nullptr) != ringSuccess) return bad("the barrier failed: {}", ringGetLastError(nullptr));
        }
        return bad("256 MiB were not too much");
    };
    auto survive = [](const Member& me) -> Verdict {
        ringResult_t result = ringSuccess;
        while (result == ringSuccess) result = ringBarrier(me.comm, nullptr);
        const std::string text = ringGetLastError(nullptr);
        if (result != ringRemoteError || text.find("rank 1 ") == std::string::npos ||
            text.find("has died") == std::string::npos)
            return bad("gave {}: {}", ringGetErrorString(result), text);
        return worked(ringCommDestroy(me.comm), "ringCommDestroy");
    };
    EXPECT_TRUE(judge_processes(kSize, [&](int rank) -> Verdict {
        const pid_t victim = rank == 1 ? fork() : 0;
        if (victim > 0) {
            int status = 0;
            waitpid(victim, &status, 0);
            return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? good() : bad("rank 1 ended with status {:#x}", status);
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        Member me{nullptr, rank, kSize};
        auto live = [&]() -> Verdict {
            if (rank == 1)
                if (Verdict v = group.enter(); !v) return v;
            ringUniqueId id;
            if (Verdict v = crew.share_id(rank, id); !v) return v;
            ringConfig_t config = world().config();
            ringResult_t made = ringCommInitRankConfig(&me.comm, kSize, id, rank, &config);
            if (Verdict v = worked(made, "ringCommInitRankConfig"); !v) return v;
            if (Verdict v = mixture(me, 1); !v) return v;
            return rank == 1 ? eat(me) : survive(me);
        };
        Verdict verdict = live();
        if (rank != 1) return verdict;
        std::fprintf(stderr, "rank 1: %s\n", verdict.message());
        _exit(1);
    }));
}

}  // namespace
}  // namespace ringccl::test
