// ringCommInitEnv under what each launcher sets. The variables are set by hand, as the launchers' documentation gives them; the
// launchers themselves are not needed.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "support/case.h"
#include "support/network_namespace.h"
#include "support/process_ranks.h"

namespace ringccl::test {
namespace {

using Variables = std::map<std::string, std::string>;

// Whatever launched this test must not be recognised.
void forget_launchers() {
    for (const char* name : {"RINGCCL_RANK", "RINGCCL_WORLD_SIZE", "RINGCCL_ROOT", "RANK", "WORLD_SIZE", "MASTER_ADDR",
                             "MASTER_PORT", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
                             "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS"})
        unsetenv(name);
}

// A port that was free a moment ago.
int free_port() {
    Fd socket(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length);
    getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length);
    return ntohs(address.sin_port);
}

// Two communicators, one after the other, as a program with two libraries inside would make them.
Verdict join_and_use(int rank, int size) {
    for (int call = 0; call < 2; ++call) {
        Member me;
        if (Verdict v = worked(ringCommInitEnv(&me.comm, nullptr), "ringCommInitEnv"); !v) return v;
        ringCommUserRank(me.comm, &me.rank);
        ringCommCount(me.comm, &me.size);
        if (me.rank != rank || me.size != size)
            return bad("is rank {} of {}, should be {} of {}", me.rank, me.size, rank, size);
        if (Verdict v = run_case(me, {.count = 10007}); !v) return v;
        if (Verdict v = worked(ringCommDestroy(me.comm), "ringCommDestroy"); !v) return v;
    }
    return good();
}

void launch(int size, const std::function<Variables(int)>& variables) {
    fork_processes(size, [&](int rank) {
        forget_launchers();
        for (auto& [name, value] : variables(rank)) setenv(name.c_str(), value.c_str(), 1);
        return join_and_use(rank, size);
    });
}

TEST(Launchers, OwnVariables) {
    std::string root = "127.0.0.1:" + std::to_string(free_port());
    launch(3, [&](int rank) {
        return Variables{{"RINGCCL_RANK", std::to_string(rank)}, {"RINGCCL_WORLD_SIZE", "3"}, {"RINGCCL_ROOT", root}};
    });
}

TEST(Launchers, OneRankNeedsNoRoot) {
    launch(1, [](int) { return Variables{{"RINGCCL_RANK", "0"}, {"RINGCCL_WORLD_SIZE", "1"}}; });
}

// torchrun holds MASTER_PORT itself while the job runs.
TEST(Launchers, Torchrun) {
    Fd store(::socket(AF_INET, SOCK_STREAM, 0));
    std::string port = std::to_string(free_port());
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(uint16_t(std::stoi(port)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(bind(store.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(listen(store.get(), 5), 0);
    launch(3, [&](int rank) {
        std::string number = std::to_string(rank);
        return Variables{{"RANK", number},
                         {"LOCAL_RANK", number},
                         {"WORLD_SIZE", "3"},
                         {"LOCAL_WORLD_SIZE", "3"},
                         {"MASTER_ADDR", "127.0.0.1"},
                         {"MASTER_PORT", port},
                         {"TORCHELASTIC_RUN_ID", "job" + port}};
    });
}

TEST(Launchers, OpenMpi) {
    std::string job = "prterun-host-" + std::to_string(getpid()) + "@1";
    launch(3, [&](int rank) {
        std::string number = std::to_string(rank);
        return Variables{{"OMPI_COMM_WORLD_RANK", number},
                         {"OMPI_COMM_WORLD_SIZE", "3"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", number},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                         {"PMIX_NAMESPACE", job}};
    });
}

TEST(Launchers, MpichHydra) {
    std::string root = "localhost:" + std::to_string(free_port());
    launch(2, [&](int rank) {
        std::string number = std::to_string(rank);
        return Variables{{"PMI_RANK", number},
                         {"PMI_SIZE", "2"},
                         {"MPI_LOCALRANKID", number},
                         {"MPI_LOCALNRANKS", "2"},
                         {"RINGCCL_ROOT", root}};
    });
}

TEST(Launchers, Slurm) {
    std::string job = std::to_string(getpid());
    launch(3, [&](int rank) {
        return Variables{{"SLURM_PROCID", std::to_string(rank)},
                         {"SLURM_NTASKS", "3"},
                         {"SLURM_STEP_NUM_TASKS", "3"},
                         {"SLURM_JOB_ID", job},
                         {"SLURM_STEP_ID", "0"},
                         {"SLURM_NNODES", "1"},
                         {"SLURM_STEP_NUM_NODES", "1"},
                         {"SLURM_STEP_NODELIST", "node17"}};
    });
}

// Between hosts, with an IPv6 address as the meeting point.
TEST(Launchers, AcrossHosts) {
    NetworkNamespace a, b;
    for (NetworkNamespace* host : {&a, &b})
        if (!host->failed().empty()) GTEST_SKIP() << host->failed();
    if (Verdict cable = NetworkNamespace::connect(a, b); !cable) GTEST_SKIP() << cable.message();
    ASSERT_TRUE(a.run("ip -6 addr add fd77::1/64 dev eth0 nodad"));
    ASSERT_TRUE(b.run("ip -6 addr add fd77::2/64 dev eth0 nodad"));
    fork_processes(2, [&](int rank) {
        forget_launchers();
        if (Verdict inside = (rank ? b : a).enter(); !inside) return inside;
        setenv("RINGCCL_RANK", rank ? "1" : "0", 1);
        setenv("RINGCCL_WORLD_SIZE", "2", 1);
        setenv("RINGCCL_ROOT", "[fd77::1]:7077", 1);
        setenv("RINGCCL_HOST_ID", rank ? "b" : "a", 1);
        return join_and_use(rank, 2);
    });
}

// What cannot be right is refused at once, with the variable's name.
TEST(Launchers, WrongVariables) {
    struct {
        Variables variables;
        const char* word;
    } wrong[] = {
        {{}, "RINGCCL_RANK"},
        {{{"RINGCCL_RANK", "0"}}, "RINGCCL_WORLD_SIZE"},
        {{{"RINGCCL_RANK", "2"}, {"RINGCCL_WORLD_SIZE", "2"}, {"RINGCCL_ROOT", "127.0.0.1:4000"}}, "RINGCCL_RANK"},
        {{{"RINGCCL_RANK", "-1"}, {"RINGCCL_WORLD_SIZE", "2"}, {"RINGCCL_ROOT", "127.0.0.1:4000"}}, "RINGCCL_RANK"},
        {{{"RINGCCL_RANK", "one"}, {"RINGCCL_WORLD_SIZE", "2"}, {"RINGCCL_ROOT", "127.0.0.1:4000"}}, "RINGCCL_RANK"},
        {{{"RINGCCL_RANK", "0"}, {"RINGCCL_WORLD_SIZE", "0"}, {"RINGCCL_ROOT", "127.0.0.1:4000"}}, "RINGCCL_WORLD_SIZE"},
        {{{"RINGCCL_RANK", "0"}, {"RINGCCL_WORLD_SIZE", "2"}}, "RINGCCL_ROOT"},
        {{{"RINGCCL_RANK", "0"}, {"RINGCCL_WORLD_SIZE", "2"}, {"RINGCCL_ROOT", "127.0.0.1"}}, "RINGCCL_ROOT"},
        {{{"RINGCCL_RANK", "0"}, {"RINGCCL_WORLD_SIZE", "2"}, {"RINGCCL_ROOT", "127.0.0.1:99999"}}, "RINGCCL_ROOT"},
    };
    for (auto& [variables, word] : wrong) {
        fork_processes(1, [&](int) {
            forget_launchers();
            for (auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
            ringComm_t comm = nullptr;
            ringResult_t result = ringCommInitEnv(&comm, nullptr);
            std::string text = ringGetLastError(nullptr);
            if (result != ringInvalidUsage || comm) return bad("gave {}: {}", ringGetErrorString(result), text);
            return text.find(word) != std::string::npos ? good() : bad("{} is not named: {}", word, text);
        });
    }
}

}  // namespace
}  // namespace ringccl::test
