// What goes over the links, counted: a ring allReduce sends 2(N-1)/N of the message per rank (Patarasuk and Yuan, 2009), and
// what the library adds to that is under a thousandth from 1 MiB on.
#include <atomic>
#include <vector>

#include "paths.h"
#include "support/thread_ranks.h"

namespace ringccl::test {
namespace {

class Traffic : public OnEveryPath {};

Verdict stats_of(const Member& me, ringCommStats_t& stats) {
    stats = {};
    stats.size = sizeof(stats);
    return worked(ringCommGetStats(me.comm, &stats), "ringCommGetStats");
}

TEST_P(Traffic, OfARingAllReduceIsOptimal) {
    WorldOptions world = {.size = GetParam().size, .transport = GetParam().path.transport, .algorithm = "ring"};
    run_ranks(world, [](const Member& me) {
        for (size_t bytes : {size_t(1) << 20, (size_t(1) << 20) + 4000, size_t(1) << 24}) {
            std::vector<float> data(bytes / sizeof(float), 1.0f);
            ringCommStats_t before, after;
            if (Verdict v = stats_of(me, before); !v) return v;
            Verdict done = worked(ringAllReduce(data.data(), data.data(), data.size(), ringFloat32, ringSum, me.comm, nullptr),
                                  "allReduce");
            if (!done) return done;
            if (Verdict v = stats_of(me, after); !v) return v;

            // Chunks differ by at most an element or, with several channels, a few; each rank sends 2(N-1) of them.
            const double ideal = 2.0 * (me.size - 1) / me.size * double(bytes);
            const double payload = double(after.payloadSent - before.payloadSent);
            const double total = double(after.bytesSent - before.bytesSent);
            if (payload < ideal * 0.999 || payload > ideal * 1.001)
                return bad("rank {} sent {} bytes of payload, the optimum is {}", me.rank, payload, ideal);
            if (total > ideal * 1.001) return bad("rank {} sent {} bytes, the optimum is {}", me.rank, total, ideal);
            if (total < payload) return bad("{} bytes sent cannot hold {} of payload", total, payload);
            if (after.operations - before.operations != 1)
                return bad("one call was counted as {}", after.operations - before.operations);
        }
        return good();
    });
}

INSTANTIATE_TEST_SUITE_P(, Traffic,
                         ::testing::Values(Place{kPointer, 2}, Place{kPointer, 5}, Place{kMemfd, 2}, Place{kMemfd, 3},
                                           Place{kMemfd, 8}, Place{kTcp, 2}, Place{kTcp, 3}, Place{kTcp, 8}),
                         place_name);

// Over all ranks, what was sent was received.
TEST(TrafficSum, SentIsReceived) {
    for (const char* transport : {"p2p", "tcp"}) {
        std::atomic<int64_t> balance = 0;
        run_ranks({.size = 4, .transport = transport}, [&](const Member& me) {
            std::vector<float> data(300007, 1.0f), all(4 * data.size());
            Verdict a =
                worked(ringAllReduce(data.data(), data.data(), data.size(), ringFloat32, ringSum, me.comm, nullptr), "a");
            Verdict b = worked(allGather(data.data(), all.data(), data.size(), ringFloat32, me.comm, nullptr), "allGather");
            Verdict c = worked(ringBarrier(me.comm, nullptr), "ringBarrier");
            if (!a || !b || !c) return !a ? a : !b ? b : c;
            ringCommStats_t stats;
            if (Verdict v = stats_of(me, stats); !v) return v;
            balance += int64_t(stats.bytesSent) - int64_t(stats.bytesReceived);
            if (stats.bytesSent < stats.payloadSent || stats.payloadSent == 0 || stats.messagesSent == 0)
                return bad("{} bytes, {} of payload, {} messages", stats.bytesSent, stats.payloadSent, stats.messagesSent);
            return good();
        });
        EXPECT_EQ(balance, 0) << transport;
    }
}

}  // namespace
}  // namespace ringccl::test
