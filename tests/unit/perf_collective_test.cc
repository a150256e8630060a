// The perf tools' idea of each collective: buffers, expectations, bandwidth factors.
#include <gtest/gtest.h>

#include <string>

#include "perf/collective.h"

namespace ringccl::perf {
namespace {

const Collective& collective(const char* program) {
    return *find_collective(program);
}

// Expected segments tile the receive buffer, come from existing ranks, and read within what the source has to send.
TEST(PerfCollective, ExpectationsFitTheBuffers) {
    for (const Collective& each : collectives()) {
        for (int world : {1, 2, 3, 8}) {
            for (int root = 0; root < (each.rooted ? world : 1); ++root) {
                for (int rank = 0; rank < world; ++rank) {
                    Job job{rank, world, root, 7};
                    Layout layout = each.layout(job);
                    size_t at = 0;
                    for (const Segment& segment : each.expected(job)) {
                        EXPECT_EQ(segment.at, at) << each.program;
                        at += segment.count;
                        int source = segment.source == kReduced ? rank : segment.source;
                        ASSERT_LT(source, world) << each.program;
                        EXPECT_LE(segment.first + segment.count, each.layout({source, world, root, 7}).send) << each.program;
                        EXPECT_EQ(segment.source == kReduced, each.reduces) << each.program;
                    }
                    EXPECT_EQ(at, layout.recv) << each.program;
                    if (!layout.in_place) continue;
                    size_t whole = std::max(layout.send, layout.recv);
                    EXPECT_LE(layout.in_place->send + layout.send, whole) << each.program;
                    EXPECT_LE(layout.in_place->recv + layout.recv, whole) << each.program;
                }
            }
        }
    }
}

TEST(PerfCollective, InPlaceOffsetsFollowTheManual) {
    Job job{2, 4, 1, 10};
    EXPECT_EQ(collective("scatter_reduce_perf").layout(job).in_place->recv, 20u);
    EXPECT_EQ(collective("all_gather_perf").layout(job).in_place->send, 20u);
    job.rank = 1;
    EXPECT_EQ(collective("gather_perf").layout(job).in_place->send, 10u);
    EXPECT_EQ(collective("scatter_perf").layout(job).in_place->recv, 10u);
    EXPECT_FALSE(collective("alltoall_perf").layout(job).in_place);
    EXPECT_FALSE(collective("sendrecv_perf").layout(job).in_place);
}

TEST(PerfCollective, WhoSendsWhatWhere) {
    auto alltoall = collective("alltoall_perf").expected({1, 3, 0, 5});
    ASSERT_EQ(alltoall.size(), 3u);
    EXPECT_EQ(alltoall[2].source, 2);
    EXPECT_EQ(alltoall[2].at, 10u);
    EXPECT_EQ(alltoall[2].first, 5u) << "rank 1's share of rank 2's buffer";
    EXPECT_EQ(collective("sendrecv_perf").expected({0, 3, 0, 5})[0].source, 2) << "the left neighbour, round the corner";
    EXPECT_TRUE(collective("reduce_perf").expected({1, 3, 0, 5}).empty()) << "only the root receives";
}

TEST(PerfCollective, BusBandwidthFactors) {
    EXPECT_DOUBLE_EQ(collective("allreduce_perf").bus_factor(4), 1.5);
    for (const char* program : {"scatter_reduce_perf", "all_gather_perf", "gather_perf", "scatter_perf", "alltoall_perf"}) {
        EXPECT_DOUBLE_EQ(collective(program).bus_factor(4), 0.75) << program;
    }
    for (const char* program : {"broadcast_perf", "reduce_perf", "sendrecv_perf"}) {
        EXPECT_DOUBLE_EQ(collective(program).bus_factor(4), 1.0) << program;
    }
    for (const Collective& each : collectives()) EXPECT_EQ(each.sent_factor(1), 0.0) << each.program << " alone sends nothing";
}

TEST(PerfCollective, CountsAndBytes) {
    const Collective& gather = collective("all_gather_perf");
    EXPECT_EQ(gather.count_for(1024, 4, 4), 64u);
    EXPECT_EQ(gather.bytes_of(64, 4, 4), 1024u);
    EXPECT_EQ(gather.count_for(8, 8, 4), 1u) << "never silently nothing";
    EXPECT_EQ(gather.count_for(0, 8, 4), 0u);
    EXPECT_EQ(collective("allreduce_perf").count_for(1024, 4, 4), 256u);
    EXPECT_EQ(collective("allreduce_perf").count_for(size_t{1} << 40, 1, 4), size_t{1} << 40);
}

TEST(PerfCollective, FindsProgramsByName) {
    EXPECT_EQ(find_collective("ring_perf"), nullptr);
    EXPECT_EQ(collectives().size(), 9u);
}

}  // namespace
}  // namespace ringccl::perf
