// Ranks that call different things: every one of them hears so, in the same words, whichever plan and transport carry the
// calls, and no byte lands outside a buffer.
#include <functional>
#include <string>
#include <vector>

#include "paths.h"
#include "support/case.h"
#include "support/guarded.h"
#include "support/thread_ranks.h"

namespace ringccl::test {
namespace {

// What one rank calls.
struct Wish {
    Kind kind = Kind::all_reduce;
    size_t count = 1000;
    ringDataType_t type = ringFloat32;
    ringRedOp_t op = ringSum;
    int root = 0;
};

// What all call, what one rank calls instead, and the words that tell the two apart.
struct Dispute {
    const char* name;
    Wish common, odd;
    std::vector<std::string> words;

    friend void PrintTo(const Dispute& dispute, std::ostream* out) { *out << dispute.name; }
};

const std::vector<Dispute>& disputes() {
    static const std::vector<Dispute> all = {
        {"count", {}, {.count = 1001}, {"the count", "1000", "1001"}},
        {"large_count", {.count = 300000}, {.count = 100000}, {"the count", "300000", "100000"}},
        {"nothing", {}, {.count = 0}, {"the count", "1000", "0"}},
        {"type", {}, {.type = ringInt32}, {"the type", "float32", "int32"}},
        {"narrow_type", {}, {.type = ringFloat16}, {"the type", "float32", "float16"}},
        {"op", {}, {.op = ringMax}, {"the op", "sum", "max"}},
        {"root", {.kind = Kind::broadcast}, {.kind = Kind::broadcast, .root = 1}, {"the root", "0", "1"}},
        {"reduce_root", {.kind = Kind::reduce}, {.kind = Kind::reduce, .root = 1}, {"the root", "0", "1"}},
        {"kind", {}, {.kind = Kind::all_gather}, {"the operation", "allReduce", "allGather"}},
        {"barrier", {}, {.kind = Kind::barrier}, {"the operation", "allReduce", "barrier"}},
        {"empty_kinds", {.count = 0}, {.kind = Kind::broadcast, .count = 0}, {"the operation", "allReduce", "broadcast"}},
        {"gather", {.kind = Kind::gather}, {.kind = Kind::gather, .count = 999}, {"the count", "1000", "999"}},
        {"all_to_all", {.kind = Kind::all_to_all}, {.kind = Kind::all_to_all, .count = 10}, {"the count", "1000", "10"}},
    };
    return all;
}

ringResult_t call(const Member& me, const Wish& wish, Guarded& send, Guarded& recv) {
    void *in = send.data(), *out = recv.data();
    switch (wish.kind) {
        case Kind::all_gather:
            return ringAllGather(in, out, wish.count, wish.type, me.comm, nullptr);
        case Kind::broadcast:
            return ringBroadcast(in, out, wish.count, wish.type, wish.root, me.comm, nullptr);
        case Kind::reduce:
            return ringReduce(in, out, wish.count, wish.type, wish.op, wish.root, me.comm, nullptr);
        case Kind::gather:
            return ringGather(in, out, wish.count, wish.type, wish.root, me.comm, nullptr);
        case Kind::all_to_all:
            return ringAllToAll(in, out, wish.count, wish.type, me.comm, nullptr);
        case Kind::barrier:
            return ringBarrier(me.comm, nullptr);
        default:
            return ringAllReduce(in, out, wish.count, wish.type, wish.op, me.comm, nullptr);
    }
}

// Some ranks of a plan may be done before the one that differs has said anything; they hear of it at their next call.
Verdict expect_mismatch(const Member& me, const Dispute& dispute, int odd_rank) {
    const Wish& wish = me.rank == odd_rank ? dispute.odd : dispute.common;
    const bool wide = wish.kind == Kind::gather || wish.kind == Kind::all_gather || wish.kind == Kind::all_to_all;
    const size_t bytes = wish.count * type_size(wish.type) * (wide ? me.size : 1);
    Guarded send(bytes, 0), recv(bytes, 0);
    ringResult_t result = call(me, wish, send, recv);
    while (result == ringSuccess) result = ringBarrier(me.comm, nullptr);
    const std::string text = ringGetLastError(me.comm);
    if (result != ringMismatch) return bad("rank {} got {}: {}", me.rank, ringGetErrorString(result), text);
    if (!send.intact() || !recv.intact()) return bad("rank {}: a byte outside a buffer was written", me.rank);
    if (text.find(fmt::format("rank {}", odd_rank)) == text.npos) return bad("does not name rank {}: {}", odd_rank, text);
    // A rank that finds the difference in its own barrier compares that; whoever compared the calls names their values.
    if (text.find("barrier") != text.npos && dispute.odd.kind != Kind::barrier) return good();
    for (const std::string& word : dispute.words)
        if (text.find(word) == text.npos) return bad("\"{}\" is not in: {}", word, text);
    return good();
}

class Agreement : public ::testing::TestWithParam<std::tuple<Path, const char*, Dispute>> {
protected:
    void SetUp() override { std::get<Path>(GetParam()).apply(env_); }
    ScopedEnv env_;
};

TEST_P(Agreement, EveryRankHearsOfTheDifference) {
    const auto& [path, algorithm, dispute] = GetParam();
    for (int odd_rank : {0, 2}) {
        run_ranks({.size = 4, .transport = path.transport, .algorithm = algorithm, .timeout_ms = 60000},
                  [&, odd_rank = odd_rank](const Member& me) { return expect_mismatch(me, dispute, odd_rank); });
    }
}

INSTANTIATE_TEST_SUITE_P(, Agreement,
                         ::testing::Combine(::testing::Values(kPointer, kMemfd, kTcp),
                                            ::testing::Values("ring", "direct", "doubling", "tree", "star"),
                                            ::testing::ValuesIn(disputes())),
                         [](const auto& info) {
                             return fmt::format("{}_{}_{}", std::get<0>(info.param).name, std::get<1>(info.param),
                                                std::get<2>(info.param).name);
                         });

// One rank makes a call more than the others, which are on their way to something else.
TEST(AgreementOfCalls, OneCallMore) {
    run_ranks({.size = 3, .timeout_ms = 60000}, [](const Member& me) {
        std::vector<float> data(10, 1);
        for (int i = 0; i < (me.rank == 1 ? 3 : 2); ++i) {
            ringResult_t done = ringAllReduce(data.data(), data.data(), 10, ringFloat32, ringSum, me.comm, nullptr);
            if (Verdict v = worked(done, "ringAllReduce"); !v && i < 2) return v;
        }
        ringResult_t result = ringBroadcast(data.data(), data.data(), 10, ringFloat32, 0, me.comm, nullptr);
        if (result == ringSuccess) result = ringBarrier(me.comm, nullptr);  // a small broadcast waits for nobody
        if (result != ringMismatch) return bad("rank {} got {}", me.rank, ringGetErrorString(result));
        const std::string text = ringGetLastError(me.comm);
        return text.find("rank 1") != text.npos ? good() : bad("does not name rank 1: {}", text);
    });
}

// The others need nothing from the rank that differs, and are thousands of calls ahead when it says that it waits.
TEST(AgreementOfCalls, FoundByRanksThatRanAhead) {
    for (const Path& path : {kPointer, kTcp}) {
        ScopedEnv env;
        path.apply(env);
        run_ranks({.size = 3, .transport = path.transport, .algorithm = "ring", .timeout_ms = 30000}, [](const Member& me) {
            std::vector<float> data(12, 1);
            int calls = 0;
            ringResult_t result = ringSuccess;
            for (; result == ringSuccess; ++calls) {
                if (me.rank == 2 && calls == 2)
                    result = ringAllReduce(data.data(), data.data(), 4, ringFloat32, ringSum, me.comm, nullptr);
                else
                    result = ringScatter(data.data(), data.data() + 4 * me.rank, 4, ringFloat32, 0, me.comm, nullptr);
            }
            const std::string text = ringGetLastError(me.comm);
            if (result != ringMismatch) return bad("rank {} got {}: {}", me.rank, ringGetErrorString(result), text);
            for (const char* word : {"rank 2", "scatter", "allReduce"})
                if (text.find(word) == text.npos) return bad("\"{}\" is not in: {}", word, text);
            return good();
        });
    }
}

// A receive of another size than what is sent.
TEST(AgreementOfCalls, SendAndReceive) {
    for (const Path& path : {kPointer, kMemfd, kCma, kTcp}) {
        ScopedEnv env;
        path.apply(env);
        run_ranks({.size = 3, .transport = path.transport, .timeout_ms = 60000}, [](const Member& me) {
            Guarded data(40000, 0);
            ringResult_t result = ringSuccess;
            if (me.rank == 0) result = ringSend(data.data(), 10000, ringFloat32, 1, me.comm, nullptr);
            if (me.rank == 1) result = ringRecv(data.data(), 9000, ringFloat32, 0, me.comm, nullptr);
            // Rank 2 and whoever was done before the difference was found meet it here.
            if (result == ringSuccess) result = ringBarrier(me.comm, nullptr);
            if (result != ringMismatch) return bad("rank {} got {}", me.rank, ringGetErrorString(result));
            const std::string text = ringGetLastError(me.comm);
            for (const char* word : {"rank 0", "rank 1", "10000", "9000"})
                if (text.find(word) == text.npos) return bad("\"{}\" is not in: {}", word, text);
            return data.intact() ? good() : bad("a byte outside the buffer was written");
        });
    }
}

}  // namespace
}  // namespace ringccl::test
