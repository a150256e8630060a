// What every plan must do, proved by carrying it out: right results, the two laws, no deadlock, nothing shown that changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "plan/pieces.h"
#include "plan_scenes.h"

namespace ringccl {
namespace {

void expect_right(const Scene& scene) {
    ASSERT_EQ(broken_law(scene), "") << describe(scene);
    ASSERT_EQ(simulate(scene), "") << describe(scene);
}

class PlanOfSize : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, PlanOfSize, testing::Range(1, 65));

TEST_P(PlanOfSize, ReducesEachElementOnceFromEachRank) {
    const size_t n = static_cast<size_t>(GetParam());
    const std::set<size_t> few{0, n - 1, n + 1}, many{0, 1, 2, 3, n - 1, n, n + 1};
    for (size_t count : n <= 16 ? many : few) {
        for_each_scene(world_of(GetParam()), count, false, expect_right);
        if (n <= 16 || count == n + 1) for_each_scene(world_of(GetParam()), count, true, expect_right);
    }
}

TEST_P(PlanOfSize, IsRightForLargeCounts) {
    const size_t huge = size_t{1} << 40;
    for (size_t count : {size_t{1000}, size_t{4097}, huge - 1, huge}) {
        for_each_scene(world_of(GetParam()), count, count % 2 == 1, [](const Scene& scene) {
            ASSERT_EQ(broken_law(scene), "") << describe(scene);
            ASSERT_EQ(simulate(shrunk(scene)), "") << describe(scene);
        });
    }
}

TEST_P(PlanOfSize, WorksOnSeveralHosts) {
    for (int hosts : {2, 3, 4}) {
        if (GetParam() % hosts != 0 || (GetParam() > 16 && GetParam() % 8 != 0)) continue;
        int hierarchical = 0;
        for (size_t count : {size_t{1}, size_t{4097}}) {
            for (bool in_place : {false, true}) {
                for_each_scene(world_of(GetParam(), hosts), count, in_place, [&](const Scene& scene) {
                    hierarchical += scene.plans[0].algorithm == std::string("hierarchical");
                    ASSERT_EQ(broken_law(scene), "") << describe(scene);
                    ASSERT_EQ(simulate(shrunk(scene)), "") << describe(scene);
                });
            }
        }
        EXPECT_EQ(hierarchical > 0, GetParam() > hosts);
    }
}

// The simulator itself must notice what it is there for.
TEST(PlanSimulator, NoticesSabotage) {
    const Shape shape{.kind = Kind::all_reduce, .count = 20};
    const Scene good = make_scene(shape, world_of(5), "ring");
    ASSERT_EQ(simulate(good), "");

    Scene bad = good;
    bad.plans[2].channels[0].steps[3].reduce = false;
    EXPECT_NE(simulate(bad), "");
    bad = good;
    bad.plans[1].channels[0].steps[5].dest = {};
    EXPECT_NE(simulate(bad), "");
    bad = good;
    std::swap(bad.plans[1].channels[0].steps[1], bad.plans[1].channels[0].steps[2]);
    EXPECT_NE(simulate(bad), "");
    bad = good;
    bad.plans[3].channels[0].steps[4].finish = false;
    EXPECT_NE(simulate(bad), "");
    bad = good;
    bad.plans[4].channels[0].steps.erase(bad.plans[4].channels[0].steps.begin());
    EXPECT_NE(simulate(bad), "");
    EXPECT_THAT(broken_law(bad), testing::HasSubstr("law 2"));
    bad = make_scene(shape, world_of(5), "tree");
    bad.plans[4].channels[0].steps[0].sinks.clear();
    EXPECT_THAT(simulate(bad), testing::HasSubstr("deadlock"));
    bad = good;
    bad.plans[0].channels[0].steps[0].local.offset += 1;
    EXPECT_THAT(broken_law(bad), testing::HasSubstr("law 1"));
}

// ---- flow: windows and slices, links that hold two windows or more, a bounded stage ----

constexpr size_t kLeast = 8, kDeep = 32;  // slices in a link

// Slices of one to three elements, so that counts up to a hundred make many windows; steps of one count are cut alike.
Limits tight(bool stage_everything, size_t depth = kLeast) {
    return {.slice = [](size_t count) { return 1 + count % 3; },
            .window = 4,
            .depth = depth,
            .bounded_stage = true,
            .stage_everything = stage_everything};
}

class PlanFlow : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, PlanFlow, testing::Range(2, 17));

TEST_P(PlanFlow, NeverLocksUp) {
    const int size = GetParam();
    unsigned seed = 1;
    for (int hosts : {1, 2, 4}) {
        if (size % hosts != 0) continue;
        for (size_t count : {size_t{0}, size_t{7}, size_t{59}, static_cast<size_t>(size) * 17 + 1}) {
            for (bool in_place : {false, true}) {
                for_each_scene(world_of(size, hosts), count, in_place, [&](const Scene& scene) {
                    for (bool stage_everything : {false, true}) {
                        ASSERT_EQ(simulate(scene, tight(stage_everything), in_order()), "") << describe(scene);
                        const size_t depth = ++seed % 3 == 0 ? kDeep : kLeast;  // in turn with either way of staging
                        ASSERT_EQ(simulate(scene, tight(stage_everything, depth), at_random(seed)), "") << describe(scene);
                    }
                });
            }
        }
    }
}

// A stage for less than the burst must lock somebody up, or the proof above proves nothing.
TEST(PlanBurst, IsNeeded) {
    Scene scene = make_scene({.kind = Kind::all_reduce, .count = 1000}, world_of(6), "twoshot");
    ASSERT_EQ(scene.plans[0].burst, 5);
    for (Plan& plan : scene.plans) plan.burst = 2;
    EXPECT_THAT(simulate(scene, tight(true), in_order()), testing::HasSubstr("deadlock"));
    scene = make_scene({.kind = Kind::scatter_reduce, .count = 100}, world_of(6), "star");
    for (Plan& plan : scene.plans) plan.burst = 1;
    EXPECT_THAT(simulate(scene, tight(true), in_order()), testing::HasSubstr("deadlock"));
}

// ---- hazards: what is shown must not change before the peer has taken it ----

class PlanHazard : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, PlanHazard, testing::Range(2, 10));

// Each rank in turn is the slowest there can be, or slices run in any order.
bool survives_slow_ranks(const Scene& scene) {
    for (int rank = 0; rank < scene.world.size; ++rank) {
        const auto schedule = with_last(static_cast<size_t>(rank), static_cast<size_t>(scene.world.size));
        if (!simulate(scene, {}, schedule).empty() || !simulate(scene, tight(false), schedule).empty()) return false;
    }
    return true;
}

TEST_P(PlanHazard, ShownMemoryKeepsUntilItIsTaken) {
    for (int hosts : {1, 2, 3}) {
        if (GetParam() % hosts != 0) continue;
        for (bool in_place : {false, true}) {
            for_each_scene(world_of(GetParam(), hosts), 61, in_place, [](const Scene& scene) {
                if (scene.plans[0].channels.size() == 1) {
                    EXPECT_TRUE(survives_slow_ranks(scene)) << describe(scene);
                }
                for (unsigned seed = 0; seed < 5; ++seed) {
                    ASSERT_EQ(simulate(scene, tight(false, seed % 2 == 0 ? kLeast : kDeep), at_random(seed)), "")
                        << describe(scene);
                }
            });
        }
    }
}

TEST_P(PlanHazard, StagesOnlyWhatWouldChange) {
    int staged = 0;
    for (bool in_place : {false, true}) {
        for_each_scene(world_of(GetParam()), 1, in_place, [&](const Scene& scene) {
            for (int rank = 0; rank < scene.world.size; ++rank) {
                for (size_t c = 0; c < scene.plans[rank].channels.size(); ++c) {
                    for (size_t s = 0; s < scene.plans[rank].channels[c].steps.size(); ++s) {
                        if (!scene.plans[rank].channels[c].steps[s].stage) continue;
                        ++staged;
                        Scene bold = scene;
                        bold.plans[rank].channels[c].steps[s].stage = false;
                        EXPECT_FALSE(survives_slow_ranks(bold))
                            << describe(scene) << ": rank " << rank << " copies in step " << s << " for nothing";
                    }
                }
            }
        });
    }
    EXPECT_GT(staged, 0);
}

// ---- bytes ----

size_t sent_by(const Plan& plan) {
    size_t sum = 0;
    for (const Channel& channel : plan.channels) {
        for (const Step& step : channel.steps) sum += step.count * step.sinks.size();
    }
    return sum;
}

TEST_P(PlanOfSize, RingSendsTheLeastThatCanBe) {
    const size_t n = static_cast<size_t>(GetParam());
    if (n == 1) return;
    for (size_t count : {size_t{0}, size_t{1}, n, 1000 * n, size_t{1} << 20, (size_t{1} << 40) + 1}) {
        const Scene scene = make_scene({.kind = Kind::all_reduce, .count = count},
                                       {.rank = 0, .size = GetParam(), .host = {}, .ring = {}}, "ring");
        auto chunk = [&](size_t c) { return part_of({0, count}, GetParam(), static_cast<int>(c % n), ringFloat32).count; };
        size_t sum = 0;
        for (size_t rank = 0; rank < n; ++rank) {
            // All chunks but its own on the way to completion, then all but the one that its right neighbour completed.
            const size_t sent = sent_by(scene.plans[rank]);
            EXPECT_EQ(sent, 2 * count - chunk(rank) - chunk(rank + 1));
            sum += sent;
            // 2(N-1)/N * K, within the rounding of two chunks to whole cache lines.
            const size_t ideal = 2 * (count - count / n);
            EXPECT_LE(std::max(sent, ideal) - std::min(sent, ideal), 2 * 16u) << count << " elements, rank " << rank;
        }
        EXPECT_EQ(sum, 2 * (n - 1) * count);
    }
}

TEST_P(PlanOfSize, TwoshotSendsAsMuchAsARing) {
    const size_t n = static_cast<size_t>(GetParam()), count = 1000 * n;
    const Scene scene = make_scene({.kind = Kind::all_reduce, .count = count}, world_of(GetParam()), "twoshot");
    size_t sum = 0;
    for (const Plan& plan : scene.plans) sum += sent_by(plan);
    EXPECT_EQ(sum, 2 * (n - 1) * count);
}

// A host's network carries each byte of the sum about once in each direction, however many ranks it has.
TEST(PlanHierarchical, CrossesTheNetworkOnce) {
    const World world = world_of(12, 3);
    const Scene scene = make_scene({.kind = Kind::all_reduce, .count = 12000}, world, "hierarchical");
    size_t across = 0;
    for (int rank = 0; rank < 12; ++rank) {
        for (const Step& step : scene.plans[rank].channels[0].steps) {
            for (int sink : step.sinks) {
                if (world.host[sink] == world.host[rank]) continue;
                EXPECT_EQ(step.phase, 1);
                across += step.count;
            }
        }
    }
    EXPECT_EQ(across, 2u * (3 - 1) * 12000);
}

TEST_P(PlanOfSize, CutsAreEvenAndOnCacheLines) {
    const int n = GetParam();
    for (ringDataType_t type : {ringInt8, ringFloat16, ringFloat64}) {
        const size_t line = 64 / type_size(type);
        for (size_t count : {size_t{5}, size_t{1000}, size_t{100003}, (size_t{1} << 40) + 7, SIZE_MAX / 16}) {
            size_t end = 3;
            for (int i = 0; i < n; ++i) {
                const Range part = part_of({3, count}, n, i, type);
                ASSERT_EQ(part.offset, end);
                end += part.count;
                ASSERT_LE(part.count, count / static_cast<size_t>(n) + line);
                if (count / static_cast<size_t>(n) >= 1024) {
                    ASSERT_EQ((part.offset - 3) % line, 0u);
                }
            }
            ASSERT_EQ(end, 3 + count);
        }
    }
}

// ---- point to point ----

TEST(PlanPairwise, SendAndRecvHaveALaneOfTheirOwn) {
    for (size_t count : {size_t{0}, size_t{1000}}) {
        const Plan send = plan_pairwise({.kind = Kind::send, .op = Op::none, .count = count},
                                        {.rank = 3, .size = 4, .host = {}, .ring = {}}, 1);
        const Plan recv = plan_pairwise({.kind = Kind::recv, .op = Op::none, .count = count},
                                        {.rank = 1, .size = 4, .host = {}, .ring = {}}, 3);
        ASSERT_EQ(send.channels.size(), 1u);
        ASSERT_EQ(recv.channels.size(), 1u);
        EXPECT_EQ(send.channels[0].lane, kPeerLane);
        EXPECT_EQ(recv.channels[0].lane, kPeerLane);
        const Step &from = send.channels[0].steps.at(0), &to = recv.channels[0].steps.at(0);
        EXPECT_EQ(from.sinks, std::vector{1});
        EXPECT_EQ(to.sources, std::vector{3});
        EXPECT_EQ(from.local, (Region{Buffer::send, 0}));
        EXPECT_EQ(to.dest, (Region{Buffer::recv, 0}));
        EXPECT_EQ(from.count, count);
        EXPECT_EQ(to.count, count);
    }
    EXPECT_TRUE(plan_pairwise({.kind = Kind::send, .op = Op::none}, {.rank = 2, .size = 4, .host = {}, .ring = {}}, 2)
                    .channels.empty());
}

}  // namespace
}  // namespace ringccl
