// Every collective x type x operation x {out of place, in place}, on every path, to the bit.
//
// What is covered: the full product with 17 small counts, around every power of two up to 64; with the remaining counts up to
// 65, one type of each width; every root. The buffers' alignment walks through 0 .. 15 bytes as the cases go by. Larger counts:
// boundaries_test.cc. RINGCCL_TEST_QUICK keeps a handful of counts.
#include <atomic>
#include <vector>

#include "paths.h"
#include "support/case.h"
#include "support/device_side.h"
#include "support/thread_ranks.h"
#include "support/values.h"

namespace ringccl::test {
namespace {

class Exact : public OnEveryPath {
protected:
    WorldOptions world() const { return {.size = GetParam().size, .transport = GetParam().path.transport}; }
};

std::vector<size_t> telling_counts() {
    if (quick()) return {0, 1, 7, 33};
    return {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65};
}

// Runs the cases one after the other; the n-th is shifted by n % 16 bytes and has root n % world size.
class Walk {
public:
    explicit Walk(const Member& me) : me_(me) {}

    Verdict run(Case c) {
        c.shift = step_ % 16;
        c.root = int(step_ % me_.size);
        ++step_;
        return run_case(me_, c);
    }
    Verdict both_places(Case c) {
        if (Verdict out = run(c); !out) return out;
        c.in_place = true;
        return c.kind == Kind::all_to_all ? good() : run(c);
    }

private:
    const Member& me_;
    size_t step_ = 0;
};

TEST_P(Exact, Reductions) {
    run_ranks(world(), [](const Member& me) {
        Walk walk(me);
        for (Kind kind : kReductions)
            for (ringDataType_t type : kAllTypes)
                for (Op op : kAllOps)
                    for (size_t count : telling_counts())
                        if (Verdict v = walk.both_places({.kind = kind, .type = type, .op = op, .count = count}); !v) return v;
        return good();
    });
}

TEST_P(Exact, Moves) {
    run_ranks(world(), [](const Member& me) {
        Walk walk(me);
        for (Kind kind : kMoves)
            for (ringDataType_t type : kAllTypes)
                for (size_t count : telling_counts())
                    if (Verdict v = walk.both_places({.kind = kind, .type = type, .count = count}); !v) return v;
        return good();
    });
}

TEST_P(Exact, EveryCountUpTo65) {
    const size_t stride = quick() ? 13 : 1;
    run_ranks(world(), [stride](const Member& me) {
        Walk walk(me);
        for (size_t count = 0; count <= 65; count += stride) {
            for (ringDataType_t type : {ringUint8, ringBfloat16, ringFloat32, ringInt64}) {
                for (Kind kind : kReductions)
                    if (Verdict v = walk.both_places({.kind = kind, .type = type, .count = count}); !v) return v;
                for (Kind kind : kMoves)
                    if (Verdict v = walk.both_places({.kind = kind, .type = type, .count = count}); !v) return v;
            }
        }
        return good();
    });
}

TEST_P(Exact, EveryRoot) {
    run_ranks(world(), [](const Member& me) {
        for (Kind kind : {Kind::broadcast, Kind::reduce, Kind::gather, Kind::scatter})
            for (int root = 0; root < me.size; ++root)
                for (size_t count : {size_t(1), size_t(1000)})
                    for (bool in_place : {false, true})
                        if (Verdict v = run_case(me, {.kind = kind, .count = count, .in_place = in_place, .root = root}); !v)
                            return v;
        return good();
    });
}

// Nobody leaves a barrier before everybody has come.
TEST_P(Exact, Barrier) {
    std::atomic<int> arrived = 0;
    run_ranks(world(), [&arrived](const Member& me) {
        for (int round = 1; round <= 50; ++round) {
            ++arrived;
            if (Verdict v = worked(ringBarrier(me.comm, me.stream), "ringBarrier"); !v) return v;
            if (Verdict v = await_side(me); !v) return v;
            if (arrived < round * me.size) return bad("rank {} left barrier {} early", me.rank, round);
        }
        return good();
    });
}

INSTANTIATE_TEST_SUITE_P(, Exact, ::testing::ValuesIn(kPlaces), place_name);

}  // namespace
}  // namespace ringccl::test
