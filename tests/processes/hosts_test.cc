// Several hosts on one machine: RINGCCL_HOST_ID makes ranks believe that they are apart, so that links between "hosts" are TCP,
// links within one are shared memory, and the hierarchical algorithm has hosts to work with.
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "support/case.h"
#include "support/environment.h"
#include "support/process_ranks.h"

namespace ringccl::test {
namespace {

// The host of each rank.
using Hosts = std::vector<int>;

struct HostLayout {
    const char* name;
    const char* algorithm;
    Hosts hosts;
};
std::string layout_name(const ::testing::TestParamInfo<HostLayout>& info) {
    return std::string(info.param.algorithm) + "_" + info.param.name;
}
void PrintTo(const HostLayout& layout, std::ostream* out) {
    *out << layout.algorithm << " " << layout.name;
}

Verdict live_on(int host) {
    setenv("RINGCCL_HOST_ID", fmt::format("host{}", host).c_str(), 1);
    return good();
}

std::vector<HostLayout> layouts() {
    std::vector<HostLayout> all;
    for (const char* algorithm : {"auto", "hierarchical", "ring", "tree", "twoshot"}) {
        all.push_back({"2x2", algorithm, {0, 0, 1, 1}});
        all.push_back({"2x3_interleaved", algorithm, {0, 1, 0, 1, 0, 1}});
        all.push_back({"3x2", algorithm, {0, 0, 1, 1, 2, 2}});
        all.push_back({"uneven", algorithm, {0, 0, 0, 1, 1}});  // hierarchical does not apply and gives way
        all.push_back({"3x1", algorithm, {0, 1, 2}});
    }
    return all;
}

class SimulatedHosts : public ::testing::TestWithParam<HostLayout> {};

TEST_P(SimulatedHosts, AreExact) {
    const HostLayout& layout = GetParam();
    ScopedEnv env = {{"RINGCCL_SLICE_BYTES", "4096"}};
    WorldOptions world = {.size = int(layout.hosts.size()), .algorithm = layout.algorithm};
    auto body = [](const Member& me) {
        for (size_t count : {size_t(0), size_t(1), size_t(7), size_t(1025), size_t(100003)}) {
            for (bool in_place : {false, true})
                for (Op op : {Op::sum, Op::avg, Op::max})
                    for (ringDataType_t type : {ringFloat32, ringInt8})
                        if (Verdict v = run_case(me, {.type = type, .op = op, .count = count, .in_place = in_place}); !v)
                            return v;
            for (Kind kind : {Kind::scatter_reduce, Kind::reduce, Kind::all_gather, Kind::broadcast, Kind::all_to_all})
                if (Verdict v = run_case(me, {.kind = kind, .count = count, .root = me.size - 1}); !v) return v;
        }
        return worked(ringBarrier(me.comm, nullptr), "ringBarrier");
    };
    run_processes(world, body, [&](int rank) { return live_on(layout.hosts[rank]); });
}

INSTANTIATE_TEST_SUITE_P(, SimulatedHosts, ::testing::ValuesIn(layouts()), layout_name);

// Ranks on different hosts cannot be joined by p2p alone. Every rank is told, and why.
TEST(HostsApart, P2pAloneIsRefused) {
    ScopedEnv env = {{"RINGCCL_TRANSPORT", "p2p"}, {"RINGCCL_INIT_TIMEOUT_MS", "10000"}};
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    fork_processes(2, [&](int rank) {
        live_on(rank);
        ringUniqueId id;
        if (rank == 0) {
            if (Verdict v = worked(ringGetUniqueId(&id), "ringGetUniqueId"); !v) return v;
            if (write(pipe_ends[1], &id, sizeof(id)) != sizeof(id)) return bad("write");
        } else if (read(pipe_ends[0], &id, sizeof(id)) != sizeof(id)) {
            return bad("read");
        }
        ringComm_t comm = nullptr;
        ringResult_t result = ringCommInitRank(&comm, 2, id, rank);
        std::string text = ringGetLastError(nullptr);
        if (result != ringInvalidUsage && result != ringRemoteError)
            return bad("gave {}: {}", ringGetErrorString(result), text);
        if (text.find("p2p") == std::string::npos) return bad("the text does not speak of p2p: {}", text);
        return comm == nullptr ? good() : bad("a communicator was given");
    });
}

}  // namespace
}  // namespace ringccl::test
