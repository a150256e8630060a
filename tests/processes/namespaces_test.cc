// Network namespaces as hosts: real interfaces with addresses of their own, and nothing else in common. Needs root.
#include <cstdlib>
#include <string>
#include <vector>

#include "support/case.h"
#include "support/environment.h"
#include "support/network_namespace.h"
#include "support/process_ranks.h"

namespace ringccl::test {
namespace {

// Two hosts with a cable between them. Ranks live on them in turn: 0 and 2 on a, 1 and 3 on b.
class Namespaces : public ::testing::Test {
protected:
    void SetUp() override {
        for (NetworkNamespace* host : {&a_, &b_})
            if (!host->failed().empty()) GTEST_SKIP() << host->failed();
        Verdict cable = NetworkNamespace::connect(a_, b_);
        if (!cable) GTEST_SKIP() << "no veth devices here: " << cable.message();
    }

    // Both hosts run the commands, with {} replaced by 1 on a and 2 on b.
    void on_both(const std::string& commands) {
        ASSERT_TRUE(a_.run(fmt::format(fmt::runtime(commands), 1)));
        ASSERT_TRUE(b_.run(fmt::format(fmt::runtime(commands), 2)));
    }

    // `apart`: the ranks also get made-up host identities, as two machines would have.
    void run(WorldOptions world, bool apart = true) {
        ScopedEnv env = {{"RINGCCL_SLICE_BYTES", "4096"}};
        auto body = [](const Member& me) {
            for (size_t count : {size_t(1), size_t(1000), size_t(100003)})
                for (Kind kind : {Kind::all_reduce, Kind::scatter_reduce, Kind::all_gather, Kind::broadcast, Kind::all_to_all})
                    if (Verdict v = run_case(me, {.kind = kind, .count = count}); !v) return v;
            return good();
        };
        run_processes(world, body, [&](int rank) {
            if (apart) setenv("RINGCCL_HOST_ID", rank % 2 ? "b" : "a", 1);
            return (rank % 2 ? b_ : a_).enter();
        });
    }

    NetworkNamespace a_, b_;
};

TEST_F(Namespaces, OverTcp) {
    on_both("ip addr add 10.77.0.{0}/24 dev eth0");
    run({.size = 4, .transport = "tcp"});
}

// Whether the library finds out by itself: shared memory within a host, TCP between them.
TEST_F(Namespaces, ByThemselves) {
    on_both("ip addr add 10.77.0.{0}/24 dev eth0");
    run({.size = 4});
    run({.size = 4, .algorithm = "hierarchical"});
}

// One kernel, so one boot id; yet unix sockets do not reach across. A probe finds that out, not a name.
TEST_F(Namespaces, SameKernelButApart) {
    on_both("ip addr add 10.77.0.{0}/24 dev eth0");
    run({.size = 4}, false);
}

TEST_F(Namespaces, Ipv6Only) {
    on_both("ip -4 addr flush dev lo; ip -6 addr add fd77::{0}/64 dev eth0 nodad");
    run({.size = 4});
    run({.size = 2, .transport = "tcp"});
}

// Both hosts have the same address besides the good one, as every container host does. Dialling it reaches oneself or nobody.
TEST_F(Namespaces, AddressesThatLeadNowhere) {
    on_both("ip addr add 172.17.0.1/16 dev lo; ip addr add 10.77.0.{0}/24 dev eth0; ip addr add 192.168.{0}.9/24 dev eth0");
    run({.size = 4});
}

// The interface can be chosen by name and by network; one that does not exist is refused by name.
TEST_F(Namespaces, ChosenInterface) {
    on_both("ip addr add 10.77.0.{0}/24 dev eth0; ip addr add 10.78.0.{0}/24 dev eth0");
    for (const char* wish : {"eth", "=eth0", "10.78.0.0/16", "^lo"}) {
        SCOPED_TRACE(wish);
        ScopedEnv env = {{"RINGCCL_INTERFACE", wish}};
        run({.size = 2, .transport = "tcp"});
    }
    ScopedEnv env = {{"RINGCCL_INTERFACE", "=ib0"}};
    fork_processes(1, [&](int) {
        if (Verdict inside = a_.enter(); !inside) return inside;
        ringUniqueId id;
        ringResult_t result = ringGetUniqueId(&id);
        std::string text = ringGetLastError(nullptr);
        if (result == ringSuccess || text.find("ib0") == std::string::npos)
            return bad("gave {}: {}", ringGetErrorString(result), text);
        return good();
    });
}

}  // namespace
}  // namespace ringccl::test
