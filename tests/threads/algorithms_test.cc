// Every algorithm by name, for every kind of collective. A name that a kind has no algorithm for means auto, so it must work
// too.
#include <string>
#include <tuple>
#include <vector>

#include "paths.h"
#include "support/case.h"
#include "support/thread_ranks.h"

namespace ringccl::test {
namespace {

struct Choice {
    const char* algorithm;
    Place place;
};

std::string choice_name(const ::testing::TestParamInfo<Choice>& info) {
    return std::string(info.param.algorithm) + "_" + info.param.place.path.name + "_" + std::to_string(info.param.place.size);
}
void PrintTo(const Choice& choice, std::ostream* out) {
    *out << choice.algorithm << " " << choice.place.size;
}

// An odd world and a power of two on every path; two and five where it costs little. "direct" is oneshot or twoshot, so once is
// enough.
std::vector<Choice> choices() {
    std::vector<Choice> all;
    for (const char* algorithm : {"ring", "oneshot", "twoshot", "doubling", "tree", "star", "hierarchical"}) {
        for (int size : {2, 3, 5, 8}) all.push_back({algorithm, {kPointer, size}});
        for (const Path& path : {kMemfd, kTcp})
            for (int size : {3, 8}) all.push_back({algorithm, {path, size}});
        all.push_back({algorithm, {kCma, 3}});
    }
    all.push_back({"direct", {kMemfd, 3}});
    return all;
}

class Algorithms : public ::testing::TestWithParam<Choice> {};

WorldOptions world_of(const Choice& choice) {
    return {.size = choice.place.size, .transport = choice.place.path.transport, .algorithm = choice.algorithm};
}

Verdict exact(const Member& me) {
    // The last one is more than a link holds in slices of 4 KiB, several times over.
    for (size_t count : {size_t(0), size_t(1), size_t(5), size_t(64), size_t(1025), size_t(30011)}) {
        if (quick() && count > 1025) continue;
        for (bool in_place : {false, true}) {
            for (Op op : {Op::sum, Op::avg, Op::premul})
                for (ringDataType_t type : {ringFloat32, ringInt32, ringBfloat16})
                    for (Kind kind : kReductions)
                        if (Verdict v = run_case(me, {.kind = kind,
                                                      .type = type,
                                                      .op = op,
                                                      .count = count,
                                                      .in_place = in_place,
                                                      .root = me.size - 1});
                            !v)
                            return v;
            for (Kind kind : {Kind::all_gather, Kind::broadcast})
                if (Verdict v = run_case(me, {.kind = kind, .count = count, .in_place = in_place, .root = 1}); !v) return v;
            if (Verdict v = worked(ringBarrier(me.comm, me.stream), "ringBarrier"); !v) return v;
        }
    }
    return good();
}

TEST_P(Algorithms, AreExact) {
    ScopedEnv env = {{"RINGCCL_SLICE_BYTES", "4096"}};
    GetParam().place.path.apply(env);
    run_ranks(world_of(GetParam()), exact);
}

// Slices of several pieces, and of one.
TEST_P(Algorithms, AreExactPastTheCaches) {
    ScopedEnv env = {{"RINGCCL_STREAM_BYTES", "1"}};
    GetParam().place.path.apply(env);
    run_ranks(world_of(GetParam()), exact);
}

INSTANTIATE_TEST_SUITE_P(, Algorithms, ::testing::ValuesIn(choices()), choice_name);

// Several rings side by side, and more sockets than one under each link.
class Channels : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(Channels, AreExact) {
    auto [channels, sockets] = GetParam();
    ScopedEnv env = {{"RINGCCL_SLICE_BYTES", "4096"},
                     {"RINGCCL_CHANNELS", std::to_string(channels)},
                     {"RINGCCL_SOCKETS", std::to_string(sockets)}};
    for (const char* transport : {"p2p", "tcp"}) {
        run_ranks({.size = 3, .transport = transport, .algorithm = "ring"}, [](const Member& me) {
            for (size_t count : {size_t(1), size_t(13), size_t(12288), size_t(100003)})
                for (Kind kind : {Kind::all_reduce, Kind::scatter_reduce, Kind::all_gather, Kind::broadcast, Kind::reduce})
                    if (Verdict v = run_case(me, {.kind = kind, .count = count}); !v) return v;
            return good();
        });
    }
}

INSTANTIATE_TEST_SUITE_P(, Channels, ::testing::Combine(::testing::Values(1, 2, 4), ::testing::Values(1, 3)));

}  // namespace
}  // namespace ringccl::test
