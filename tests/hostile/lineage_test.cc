// Ranks that fork, exec and have threads: what children get to see of the library, and what signals do not reach.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/deadline.h"
#include "crew.h"
#include "support/case.h"
#include "support/environment.h"
#include "support/process_ranks.h"

namespace ringccl::test {
namespace {

namespace fs = std::filesystem;

constexpr int kSize = 3;

class Lineage : public ::testing::TestWithParam<Path> {
protected:
    void SetUp() override {
        GetParam().apply(env_);
        env_.set("RINGCCL_LOG", "off");
    }
    WorldOptions world() const { return {.size = kSize, .transport = GetParam().transport, .timeout_ms = 60000}; }
    ScopedEnv env_;
};

INSTANTIATE_TEST_SUITE_P(, Lineage, ::testing::Values(kTcp, kMemfd, kCma),
                         [](const ::testing::TestParamInfo<Path>& info) { return info.param.name; });

// Every call that takes a communicator, with one that belongs to the parent. The name of the first that does not answer
// ringInvalidUsage, or "".
std::string first_not_refused(ringComm_t comm, int rank) {
    float data[16] = {};
    int number = 0;
    ringComm_t made = nullptr;
    ringRedOp_t op;
    ringResult_t state;
    ringCommStats_t stats = {};
    stats.size = sizeof stats;
    void* handle = nullptr;
    const int other = (rank + 1) % kSize;
    const std::pair<const char*, ringResult_t> answers[] = {
        {"ringAllReduce", ringAllReduce(data, data, 4, ringFloat32, ringSum, comm, nullptr)},
        {"ringScatterReduce", ringScatterReduce(data, data + 12, 4, ringFloat32, ringSum, comm, nullptr)},
        {"ringAllGather", ringAllGather(data, data + 4, 4, ringFloat32, comm, nullptr)},
        {"ringBroadcast", ringBroadcast(data, data, 4, ringFloat32, 0, comm, nullptr)},
        {"ringReduce", ringReduce(data, data, 4, ringFloat32, ringSum, 0, comm, nullptr)},
        {"ringGather", ringGather(data, data + 4, 4, ringFloat32, 0, comm, nullptr)},
        {"ringScatter", ringScatter(data, data + 12, 4, ringFloat32, 0, comm, nullptr)},
        {"ringAllToAll", ringAllToAll(data, data + 6, 2, ringFloat32, comm, nullptr)},
        {"ringBarrier", ringBarrier(comm, nullptr)},
        {"ringSend", ringSend(data, 1, ringFloat32, other, comm, nullptr)},
        {"ringRecv", ringRecv(data, 1, ringFloat32, other, comm, nullptr)},
        {"ringCommSplit", ringCommSplit(comm, 0, 0, &made, nullptr)},
        {"ringCommShrink", ringCommShrink(comm, nullptr, 0, &made, nullptr)},
        {"ringCommCount", ringCommCount(comm, &number)},
        {"ringCommUserRank", ringCommUserRank(comm, &number)},
        {"ringCommDevice", ringCommDevice(comm, &number)},
        {"ringCommRegister", ringCommRegister(comm, data, sizeof data, &handle)},
        {"ringRedOpCreatePreMulSum", ringRedOpCreatePreMulSum(&op, data, ringFloat32, comm)},
        {"ringCommGetStats", ringCommGetStats(comm, &stats)},
        {"ringCommGetAsyncError", ringCommGetAsyncError(comm, &state)},
        {"ringCommAbort", ringCommAbort(comm)},
        {"ringCommFinalize", ringCommFinalize(comm)},
        {"ringCommDestroy", ringCommDestroy(comm)},
    };
    for (auto& [name, answer] : answers)
        if (answer != ringInvalidUsage) return fmt::format("{} gave {}", name, ringGetErrorString(answer));
    return "";
}

// The child of a rank in the middle of work: refused by every call; it ends by exit(), which destroys what is static; and
// nobody notices.
TEST_P(Lineage, AChildIsRefusedEverything) {
    Crew crew;
    auto body = [](const Member& me) -> Verdict {
        ringStream_t stream = nullptr;
        if (Verdict v = worked(ringStreamCreate(&stream), "ringStreamCreate"); !v) return v;
        for (int turn = 0; turn < 3; ++turn) {
            if (Verdict v = mixture(me, 2); !v) return v;
            std::vector<float> data(100003, 1.0f);
            // Under way while the child is made.
            ringResult_t queued = ringAllReduce(data.data(), data.data(), data.size(), ringFloat32, ringSum, me.comm, stream);
            if (Verdict v = worked(queued, "ringAllReduce"); !v) return v;
            int words[2];
            if (pipe2(words, O_CLOEXEC) != 0) return bad("pipe");
            const pid_t child = me.rank == turn ? fork() : -1;
            if (child == 0) {
                const std::string wrong = first_not_refused(me.comm, me.rank);
                [[maybe_unused]] ssize_t written = write(words[1], wrong.data(), wrong.size());
                std::exit(wrong.empty() ? 0 : 1);
            }
            close(words[1]);
            if (child > 0) {
                int status = -1;
                const bool ended = await([&] { return waitpid(child, &status, WNOHANG) == child; }, 20000);
                if (!ended) kill(child, SIGKILL), waitpid(child, nullptr, 0);
                char said[200] = {};
                [[maybe_unused]] ssize_t got = read(words[0], said, sizeof said - 1);
                if (!ended || status != 0)
                    return bad("the child {} ({:#x}): {}", ended ? "ended badly" : "hangs", status, said);
            }
            close(words[0]);
            if (Verdict v = worked(ringStreamSynchronize(stream), "ringStreamSynchronize"); !v) return v;
            for (float x : data)
                if (x != float(me.size)) return bad("a sum is {}", x);
        }
        if (Verdict v = mixture(me, 2); !v) return v;
        return worked(ringStreamDestroy(stream), "ringStreamDestroy");
    };
    EXPECT_TRUE(crew.run({.world = world(), .body = body}));
}

// A worker that a rank has forked lives on after the rank was killed, and holds copies of its descriptors. The others must
// learn of the death all the same.
TEST_P(Lineage, AChildDoesNotHideItsParentsDeath) {
    Crew crew;
    auto body = [&](const Member& me) -> Verdict {
        if (Verdict v = mixture(me, 1); !v) return v;
        if (me.rank == 1) {
            const pid_t child = fork();
            if (child == 0) {
                crew->word[1] = getpid();
                await([&] { return crew->word[2] == kSize - 1; }, 30000);
                _exit(0);
            }
            await([&] { return crew->word[1] != 0; }, 10000);
            crew->word[0] = 1;
            _exit(0);  // no goodbye, no destructors: as if killed, but for the test's own report
        }
        await([&] { return crew->word[0] == 1; }, 30000);
        const auto began = Deadline::Clock::now();
        std::vector<float> data(1000);
        ringResult_t result = ringSuccess;
        while (result == ringSuccess)
            result = ringAllReduce(data.data(), data.data(), data.size(), ringFloat32, ringSum, me.comm, nullptr);
        const std::string text = ringGetLastError(nullptr);
        ++crew->word[2];
        if (result != ringRemoteError || text.find("rank 1") == std::string::npos)
            return bad("gave {}: {}", ringGetErrorString(result), text);
        return Deadline::Clock::now() - began < std::chrono::seconds(10) ? good() : bad("only after more than 10 s");
    };
    EXPECT_TRUE(crew.run({.world = {.size = kSize, .transport = GetParam().transport, .timeout_ms = 30000}, .body = body}));
    if (crew->word[1] > 1) kill(crew->word[1], SIGKILL);
}

std::set<std::string> inheritable() {
    std::set<std::string> open;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
        int fd = std::stoi(entry.path().filename());
        int flags = fcntl(fd, F_GETFD);
        std::error_code gone;
        if (flags >= 0 && !(flags & FD_CLOEXEC)) open.insert(fmt::format("{} {}", fd, fs::read_symlink(entry, gone).string()));
    }
    return open;
}

// A program that a rank starts has no descriptor of the library.
TEST_P(Lineage, AProgramInheritsNothing) {
    Crew crew;
    auto body = [](const Member& me) -> Verdict {
        ringStream_t stream = nullptr;
        if (Verdict v = worked(ringStreamCreate(&stream), "ringStreamCreate"); !v) return v;
        void* block = nullptr;
        if (Verdict v = worked(ringMemAlloc(&block, 1 << 20), "ringMemAlloc"); !v) return v;
        Member on_stream = me;
        on_stream.stream = stream;
        if (Verdict v = mixture(on_stream, 2); !v) return v;
        // Seen from the program: what is open in it beyond what the test itself lets through.
        FILE* listing = popen("ls -l /proc/self/fd", "re");
        char line[512];
        std::string strange;
        while (listing && fgets(line, sizeof line, listing)) {
            const std::string_view text(line);
            for (const char* ours : {"ringccl", "anon_inode:", "socket:"})
                if (text.find(ours) != std::string_view::npos) strange += text;
        }
        if (listing) pclose(listing);
        if (!strange.empty()) return bad("a program got {}", strange);
        if (Verdict v = worked(ringMemFree(block), "ringMemFree"); !v) return v;
        return worked(ringStreamDestroy(stream), "ringStreamDestroy");
    };
    const std::set<std::string> before = inheritable();
    for (const std::string& one : before)
        if (one.find("socket:") != std::string::npos) GTEST_SKIP() << "the test itself was given " << one;
    EXPECT_TRUE(crew.run({.world = world(), .body = body}));
}

// The signals that a task of this process lets through, as a mask; and its name.
std::pair<uint64_t, std::string> lets_through(const fs::path& task) {
    std::ifstream status(task / "status");
    uint64_t blocked = ~uint64_t{0};
    std::string name;
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("SigBlk:")) blocked = std::stoull(line.substr(7), nullptr, 16);
        if (line.starts_with("Name:")) name = line.substr(6);
    }
    // Bit 0 is signal 1. The kernel lets nobody block SIGKILL and SIGSTOP, the C library not its own two.
    constexpr uint64_t kNobodys = uint64_t{1} << (SIGKILL - 1) | uint64_t{1} << (SIGSTOP - 1) | uint64_t{3} << 31;
    return {~blocked & ~kNobodys, name};
}

// Threads of the library leave signals to the program's own: while ranks join (the meeting point), while a stream works.
TEST_P(Lineage, ThreadsOfTheLibraryTakeNoSignals) {
    Crew crew;
    auto others_block_all = [&](const char* when, int at_least) -> Verdict {
        int threads = 0;
        for (const auto& task : fs::directory_iterator("/proc/self/task")) {
            if (std::stoi(task.path().filename()) == getpid()) continue;
            auto [open, name] = lets_through(task);
            if (open != 0) return bad("{}: thread {} lets signals {:#x} through", when, name, open);
            ++threads;
        }
        return threads >= at_least ? good() : bad("{}: only {} threads", when, threads);
    };
    auto before = [&](int rank) -> Verdict {
        // The meeting point's thread is there from the id on.
        return others_block_all("while joining", rank == 0 ? 1 : 0);
    };
    auto body = [&](const Member& me) -> Verdict {
        if (Verdict v = others_block_all("after joining", 0); !v) return v;
        ringStream_t stream = nullptr;
        if (Verdict v = worked(ringStreamCreate(&stream), "ringStreamCreate"); !v) return v;
        Member on_stream = me;
        on_stream.stream = stream;
        if (Verdict v = mixture(on_stream, 1); !v) return v;
        if (Verdict v = others_block_all("with a stream", 1); !v) return v;
        return worked(ringStreamDestroy(stream), "ringStreamDestroy");
    };
    EXPECT_TRUE(crew.run({.world = world(), .before = before, .body = body}));
}

}  // namespace
}  // namespace ringccl::test
