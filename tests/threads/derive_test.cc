// Split and shrink: who is in the new world, in which order, and that it works beside the old one.
#include <vector>

#include "paths.h"
#include "support/case.h"
#include "support/thread_ranks.h"

namespace ringccl::test {
namespace {

class Derive : public OnEveryPath {
protected:
    WorldOptions world() const { return {.size = GetParam().size, .transport = GetParam().path.transport}; }
};

// Whether comm says that we are `rank` of `size`, and sums rightly.
Verdict is_world(ringComm_t comm, int rank, int size) {
    Member me{comm, -1, -1};
    if (Verdict v = worked(ringCommCount(comm, &me.size), "ringCommCount"); !v) return v;
    if (Verdict v = worked(ringCommUserRank(comm, &me.rank), "ringCommUserRank"); !v) return v;
    if (me.rank != rank || me.size != size) return bad("is rank {} of {}, should be {} of {}", me.rank, me.size, rank, size);
    for (size_t count : {size_t(1), size_t(30011)})
        if (Verdict v = run_case(me, {.count = count}); !v) return v;
    return run_case(me, {.kind = Kind::all_gather, .count = 100});
}

TEST_P(Derive, SplitByColor) {
    run_ranks(world(), [](const Member& me) {
        ringComm_t part = nullptr;
        if (Verdict v = worked(ringCommSplit(me.comm, me.rank % 2, 0, &part, nullptr), "ringCommSplit"); !v) return v;
        if (Verdict v = is_world(part, me.rank / 2, (me.size + 1 - me.rank % 2) / 2); !v) return v;
        if (Verdict v = is_world(me.comm, me.rank, me.size); !v) return v;
        return worked(ringCommDestroy(part), "ringCommDestroy");
    });
}

TEST_P(Derive, KeyGivesTheOrder) {
    run_ranks(world(), [](const Member& me) {
        ringComm_t reversed = nullptr;
        if (Verdict v = worked(ringCommSplit(me.comm, 4, -me.rank, &reversed, nullptr), "ringCommSplit"); !v) return v;
        if (Verdict v = is_world(reversed, me.size - 1 - me.rank, me.size); !v) return v;
        return worked(ringCommDestroy(reversed), "ringCommDestroy");
    });
}

TEST_P(Derive, NoColorGetsNothing) {
    run_ranks(world(), [](const Member& me) {
        ringComm_t rest = me.comm;  // anything but NULL
        int color = me.rank == 0 ? RINGCCL_SPLIT_NOCOLOR : 7;
        if (Verdict v = worked(ringCommSplit(me.comm, color, 0, &rest, nullptr), "ringCommSplit"); !v) return v;
        if (me.rank == 0) return rest == nullptr ? good() : bad("rank 0 got a communicator");
        if (Verdict v = is_world(rest, me.rank - 1, me.size - 1); !v) return v;
        return worked(ringCommDestroy(rest), "ringCommDestroy");
    });
}

// The parent may go first, and children have children.
TEST_P(Derive, ChildrenOutliveTheirParent) {
    run_ranks(world(), [](const Member& me) {
        ringComm_t child = nullptr, grandchild = nullptr;
        if (Verdict v = worked(ringCommSplit(me.comm, 0, me.rank, &child, nullptr), "ringCommSplit"); !v) return v;
        if (Verdict v = worked(ringCommSplit(child, 0, me.rank, &grandchild, nullptr), "ringCommSplit"); !v) return v;
        if (Verdict v = worked(ringCommDestroy(child), "ringCommDestroy"); !v) return v;
        if (Verdict v = is_world(grandchild, me.rank, me.size); !v) return v;
        return worked(ringCommDestroy(grandchild), "ringCommDestroy");
    });
}

TEST_P(Derive, ShrinkLeavesOut) {
    if (GetParam().size < 3) GTEST_SKIP() << "nobody would be left to talk to";
    run_ranks(world(), [](const Member& me) {
        const int excluded[] = {1};
        if (me.rank == 1) return good();  // does not take part at all
        ringComm_t rest = nullptr;
        if (Verdict v = worked(ringCommShrink(me.comm, excluded, 1, &rest, nullptr), "ringCommShrink"); !v) return v;
        if (Verdict v = is_world(rest, me.rank > 1 ? me.rank - 1 : 0, me.size - 1); !v) return v;
        return worked(ringCommDestroy(rest), "ringCommDestroy");
    });
}

// A communicator that was aborted is what shrink is for.
TEST_P(Derive, ShrinkAfterAbort) {
    if (GetParam().size < 3) GTEST_SKIP() << "nobody would be left to talk to";
    run_ranks(world(), [](const Member& me) {
        const int last = me.size - 1;
        // Who is quick aborts while others are still on their way out of the barrier.
        ringResult_t met = ringBarrier(me.comm, nullptr);
        if (met != ringSuccess && met != ringRemoteError) return worked(met, "ringBarrier");
        ringCommAbort(me.comm);
        if (me.rank == last) return good();
        float data = 1;
        if (ringAllReduce(&data, &data, 1, ringFloat32, ringSum, me.comm, nullptr) != ringRemoteError)
            return bad("an aborted communicator still works");
        ringComm_t rest = nullptr;
        if (Verdict v = worked(ringCommShrink(me.comm, &last, 1, &rest, nullptr), "ringCommShrink"); !v) return v;
        if (Verdict v = is_world(rest, me.rank, me.size - 1); !v) return v;
        return worked(ringCommDestroy(rest), "ringCommDestroy");
    });
}

INSTANTIATE_TEST_SUITE_P(, Derive,
                         ::testing::Values(Place{kPointer, 2}, Place{kPointer, 5}, Place{kMemfd, 3}, Place{kTcp, 2},
                                           Place{kTcp, 5}),
                         place_name);

}  // namespace
}  // namespace ringccl::test
