// Which plan is chosen, and how it is printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan_scenes.h"

namespace ringccl {
namespace {

using testing::AnyOf;
using testing::Eq;
using testing::HasSubstr;
using testing::Not;

constexpr size_t kSmall = 16, kLarge = 64 << 20;  // float32 elements

constexpr LinkCost kShared{.alpha_us = 0.5,
                           .show_us = 0.3,
                           .message_us = 0.2,
                           .send_us_per_byte = 6e-5,
                           .recv_us_per_byte = 2.5e-5,
                           .inline_bytes = 88};
constexpr LinkCost kLoopback{.alpha_us = 3, .message_us = 4, .send_us_per_byte = 1.2e-4, .recv_us_per_byte = 1.2e-4};
constexpr LinkCost kEthernet{.alpha_us = 25, .message_us = 4, .send_us_per_byte = 1.2e-4, .recv_us_per_byte = 1e-3};

CostModel shared_memory(int cpus) {
    return {kShared, kShared, cpus};
}
CostModel loopback(int cpus) {
    return {kLoopback, kLoopback, cpus};
}
CostModel ethernet(int cpus) {
    return {kShared, kEthernet, cpus};
}

std::string chosen(const Shape& shape, const World& world, const CostModel& model, const std::string& wish = "auto") {
    return choose_plan(shape, world, model, wish, 0).algorithm;
}
Shape all_reduce(size_t count) {
    return {.kind = Kind::all_reduce, .count = count};
}

TEST(PlanChoice, IsTheSameOnAllRanks) {
    for (int hosts : {1, 2, 4}) {
        for (size_t count : {size_t{0}, kSmall, size_t{5000}, kLarge}) {
            for (int k = 0; k <= static_cast<int>(Kind::barrier); ++k) {
                const Shape shape{static_cast<Kind>(k), ringFloat32, Op::sum, k == static_cast<int>(Kind::barrier) ? 0 : count};
                Scene scene = make_scene(shape, world_of(8, hosts), "auto", 0);
                for (int rank = 0; rank < 8; ++rank) {
                    EXPECT_STREQ(scene.plans[rank].algorithm, scene.plans[0].algorithm);
                    EXPECT_EQ(scene.plans[rank].burst, scene.plans[0].burst);
                }
                EXPECT_EQ(broken_law(scene), "") << describe(scene);
            }
        }
    }
}

// Some ranks may call in place and others not.
TEST(PlanChoice, DoesNotLookAtInPlace) {
    for (size_t count = 1; count < kLarge; count = count * 5 / 4 + 1) {
        Shape apart = all_reduce(count), in_place = apart;
        in_place.in_place = true;
        for (int size : {2, 3, 8}) {
            EXPECT_EQ(chosen(apart, world_of(size), shared_memory(2)), chosen(in_place, world_of(size), shared_memory(2)));
            EXPECT_EQ(chosen(apart, world_of(size), ethernet(2)), chosen(in_place, world_of(size), ethernet(2)));
        }
    }
}

TEST(PlanChoice, TakesDirectPlansWhereMemoryIsShared) {
    EXPECT_EQ(chosen(all_reduce(kSmall), world_of(4), shared_memory(8)), "oneshot");
    EXPECT_EQ(chosen(all_reduce(kLarge), world_of(4), shared_memory(8)), "twoshot");
    EXPECT_EQ(chosen({.kind = Kind::broadcast, .op = Op::none, .count = kLarge}, world_of(4), shared_memory(8)), "star");
    EXPECT_EQ(chosen({.kind = Kind::all_gather, .op = Op::none, .count = kLarge}, world_of(4), shared_memory(8)), "twoshot");
}

// Ranks that share a CPU pay a context switch for every step that waits for another, and all messages cost the same CPU's time.
TEST(PlanChoice, AvoidsStepsAndMessagesWhereCpusAreShort) {
    EXPECT_EQ(chosen(all_reduce(kSmall), world_of(2), shared_memory(1)), "oneshot");
    for (int size : {4, 8, 16}) {
        EXPECT_EQ(chosen(all_reduce(kSmall), world_of(size), shared_memory(1)), "star");
        EXPECT_EQ(chosen({.kind = Kind::barrier, .op = Op::none, .count = 0}, world_of(size), shared_memory(1)), "star");
        EXPECT_EQ(chosen(all_reduce(kLarge), world_of(size), shared_memory(2)), "twoshot");
        World apart = world_of(size);
        apart.visible = false;
        EXPECT_EQ(chosen(all_reduce(kSmall), apart, loopback(2)), "star");
        EXPECT_THAT(chosen(all_reduce(kLarge), apart, loopback(2)), AnyOf(Eq("twoshot"), Eq("ring")));
    }
}

// With few CPUs busy, the rank in the middle of a star is one too many.
TEST(PlanChoice, KeepsTheCentreOutOfTheWayWhereCpusAreFree) {
    World apart = world_of(8);
    apart.visible = false;
    EXPECT_EQ(chosen(all_reduce(kSmall), apart, loopback(8)), "doubling");
    EXPECT_EQ(chosen(all_reduce(kSmall), world_of(8), shared_memory(8)), "doubling");
}

TEST(PlanChoice, CrossesNetworksWithCare) {
    EXPECT_THAT(chosen(all_reduce(kSmall), world_of(64, 64), ethernet(1)), AnyOf(Eq("doubling"), Eq("tree")));
    EXPECT_EQ(chosen(all_reduce(kLarge), world_of(16, 4), ethernet(4)), "hierarchical");
    World uneven = world_of(5);
    uneven.host = {0, 0, 0, 1, 1};  // no hierarchy without equally many ranks a host
    EXPECT_THAT(chosen(all_reduce(kLarge), uneven, ethernet(4)), Eq("ring"));
    EXPECT_EQ(chosen({.kind = Kind::broadcast, .op = Op::none, .count = kLarge}, world_of(8, 8), ethernet(1)), "ring");
}

TEST(PlanChoice, UsesSeveralLanesOnlyForLargeMessagesBetweenHosts) {
    EXPECT_EQ(choose_plan(all_reduce(kLarge), world_of(4, 4), ethernet(1), "ring", 0).channels.size(), 2u);
    EXPECT_EQ(choose_plan(all_reduce(kSmall), world_of(4, 4), ethernet(1), "ring", 0).channels.size(), 1u);
    EXPECT_EQ(choose_plan(all_reduce(kLarge), world_of(4), shared_memory(4), "ring", 0).channels.size(), 1u);
    EXPECT_EQ(choose_plan(all_reduce(kSmall), world_of(4), shared_memory(4), "ring", 99).channels.size(),
              static_cast<size_t>(kLanes - 1));
}

TEST(PlanChoice, FollowsAWishThatCanBeMet) {
    const World world = world_of(8, 2);
    for (const char* name : {"ring", "oneshot", "twoshot", "doubling", "tree", "star", "hierarchical"}) {
        EXPECT_EQ(chosen(all_reduce(1000), world, shared_memory(8), name), name);
    }
    EXPECT_EQ(chosen(all_reduce(kSmall), world_of(8), shared_memory(8), "direct"), "oneshot");
    EXPECT_EQ(chosen(all_reduce(kLarge), world_of(8), shared_memory(8), "direct"), "twoshot");
    const Shape gather{.kind = Kind::all_gather, .op = Op::none, .count = 1000};
    EXPECT_EQ(chosen(gather, world_of(8), shared_memory(8), "direct"), "twoshot");
    EXPECT_EQ(chosen(gather, world_of(8), shared_memory(8), "doubling"), chosen(gather, world_of(8), shared_memory(8)));
    EXPECT_EQ(chosen(all_reduce(1000), world_of(8), shared_memory(8), "hierarchical"),  // there is one host
              chosen(all_reduce(1000), world_of(8), shared_memory(8)));
    EXPECT_EQ(chosen(all_reduce(1000), world_of(1), shared_memory(8), "ring"), "alone");
}

TEST(PlanChoice, KeepsIntegerAveragesInOneCombine) {
    const Shape shape{.kind = Kind::all_reduce, .type = ringInt32, .op = Op::avg, .count = 1000};
    for (const Candidate& candidate : candidates(shape, world_of(8, 2), ethernet(4))) {
        EXPECT_THAT(candidate.algorithm, AnyOf(testing::StrEq("oneshot"), testing::StrEq("twoshot"), testing::StrEq("star")));
    }
    EXPECT_THAT(chosen(shape, world_of(8), shared_memory(8), "ring"), Not(Eq("ring")));
}

TEST(PlanChoice, RanksCandidatesByTime) {
    const std::vector<Candidate> ranked = candidates(all_reduce(kLarge), world_of(8, 2), ethernet(4));
    ASSERT_EQ(ranked.size(), 7u);
    for (size_t i = 1; i < ranked.size(); ++i) EXPECT_LE(ranked[i - 1].microseconds, ranked[i].microseconds);
    EXPECT_GT(ranked[0].microseconds, 0);
}

// ---- printing ----

std::string printed(const Scene& scene) {
    return print_plan(scene.shape, scene.plans);
}
World plain(int size) {
    return {.rank = 0, .size = size, .host = {}, .ring = {}};
}

TEST(PlanPrint, ShowsTheClassicRing) {
    EXPECT_EQ(printed(make_scene(all_reduce(20), plain(5), "ring")),
              R"(ring allReduce of 20 float32 elements, sum: 5 ranks

lane 0: chunks of 4 elements
  step   0 -> 1  1 -> 2  2 -> 3  3 -> 4  4 -> 0   the receiver
     1     4       0       1       2       3      adds its own, passes it on
     2     3       4       0       1       2      adds its own, passes it on
     3     2       3       4       0       1      adds its own, passes it on
     4     1       2       3       4       0      adds its own: complete, keeps it, passes it on
     5     0       1       2       3       4      keeps it, passes it on
     6     4       0       1       2       3      keeps it, passes it on
     7     3       4       0       1       2      keeps it, passes it on
     8     2       3       4       0       1      keeps it

Each rank sends 32 elements, in 8 dependent steps.
)");
}

TEST(PlanPrint, ListsWhatManyPairsSay) {
    const std::string text = printed(make_scene(all_reduce(20), plain(5), "twoshot"));
    EXPECT_THAT(text, HasSubstr("     1  rank 0: chunk 1 to 1, chunk 2 to 2, chunk 3 to 3, chunk 4 to 4\n"));
    EXPECT_THAT(text, HasSubstr("        the receiver adds all and its own: complete, keeps it, passes it on\n"));
    EXPECT_THAT(text, HasSubstr("     2  rank 0: chunk 0 to everybody\n"));
    EXPECT_THAT(text, HasSubstr("in 2 dependent steps"));
}

TEST(PlanPrint, SaysThatChannelsAreAlike) {
    EXPECT_THAT(printed(make_scene(all_reduce(20), plain(5), "ring", 2)),
                HasSubstr("lane 1: chunks of 2 elements, the same steps\n"));
}

TEST(PlanPrint, AbridgesLongPlans) {
    for (const char* algorithm : {"ring", "twoshot", "oneshot", "tree", "doubling", "star"}) {
        const std::string text = printed(make_scene(all_reduce(6400), plain(64), algorithm));
        EXPECT_THAT(text, HasSubstr("Abridged: only what ranks 0 to 3 send."));
        EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 50) << text;
    }
}

TEST(PlanPrint, CountsDependentSteps) {
    auto steps = [](const char* algorithm, int size) { return printed(make_scene(all_reduce(64), plain(size), algorithm)); };
    EXPECT_THAT(steps("oneshot", 8), HasSubstr("in 1 dependent step."));
    EXPECT_THAT(steps("doubling", 8), HasSubstr("in 3 dependent steps."));
    EXPECT_THAT(steps("doubling", 7), HasSubstr("in 4 dependent steps."));
    EXPECT_THAT(steps("tree", 8), HasSubstr("in 6 dependent steps."));
    EXPECT_THAT(steps("star", 8), HasSubstr("in 2 dependent steps."));
    EXPECT_THAT(steps("ring", 8), HasSubstr("in 14 dependent steps."));
    EXPECT_THAT(steps("ring", 1), HasSubstr("Nothing travels."));
}

TEST(PlanPrint, ServesEveryPlan) {
    for (int size : {1, 2, 5, 17}) {
        for_each_scene(world_of(size), 10, false, [](const Scene& scene) {
            const std::string text = printed(scene);
            EXPECT_THAT(text, HasSubstr(kind_name(scene.shape.kind)));
            EXPECT_THAT(text, Not(HasSubstr(" \n"))) << "blanks at the end of a line";
        });
    }
}

}  // namespace
}  // namespace ringccl
