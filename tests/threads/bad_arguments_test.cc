// Every argument that can be wrong by itself: the result code, a text that names it, nothing written, and a communicator that
// works as before.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/environment.h"
#include "support/thread_ranks.h"

namespace ringccl::test {
namespace {

using ::testing::HasSubstr;

struct Attempt {
    const char* what;
    ringResult_t code;
    const char* word;  // that the text must hold
    std::function<ringResult_t()> call;
};

void expect_refused(const std::vector<Attempt>& attempts) {
    for (const Attempt& attempt : attempts) {
        ringResult_t result = attempt.call();
        std::string text = ringGetLastError(nullptr);
        EXPECT_EQ(result, attempt.code) << attempt.what << ": " << text;
        EXPECT_THAT(text, HasSubstr(attempt.word)) << attempt.what;
    }
}

// Rank 0 of a world of two in one thread. Refused calls need no partner; one that is wrongly accepted runs into the timeout.
class BadArguments : public ::testing::Test {
protected:
    void SetUp() override {
        ringConfig_t config = WorldOptions{.timeout_ms = 5000}.config();
        ASSERT_TRUE(worked(ringCommInitAll(comms_, 2, &config), "ringCommInitAll"));
        before_ = data_;
    }
    void TearDown() override {
        EXPECT_EQ(data_, before_) << "a refused call wrote";
        // The communicators are as good as before.
        float a = 1, b = 2;
        ringGroupStart();
        ringAllReduce(&a, &a, 1, ringFloat32, ringSum, comms_[0], nullptr);
        ringAllReduce(&b, &b, 1, ringFloat32, ringSum, comms_[1], nullptr);
        EXPECT_TRUE(worked(ringGroupEnd(), "ringGroupEnd"));
        EXPECT_EQ(a, 3);
        for (ringComm_t comm : comms_) EXPECT_EQ(ringCommDestroy(comm), ringSuccess);
    }

    float* at(size_t element) { return data_.data() + element; }

    ringComm_t comms_[2] = {};
    std::vector<float> data_ = std::vector<float>(400, 1.5f), before_;
};

TEST_F(BadArguments, NullBuffers) {
    float *a = at(0), *b = at(200);
    ringComm_t comm = comms_[0];
    const ringResult_t code = ringInvalidArgument;
    expect_refused({
        {"allReduce", code, "send", [=] { return ringAllReduce(nullptr, b, 9, ringFloat32, ringSum, comm, nullptr); }},
        {"allReduce", code, "receive", [=] { return ringAllReduce(a, nullptr, 9, ringFloat32, ringSum, comm, nullptr); }},
        {"scatterReduce", code, "send", [=] { return scatterReduce(nullptr, b, 9, ringFloat32, ringSum, comm, nullptr); }},
        {"scatterReduce", code, "receive", [=] { return scatterReduce(a, nullptr, 9, ringFloat32, ringSum, comm, nullptr); }},
        {"allGather", code, "send", [=] { return allGather(nullptr, b, 9, ringFloat32, comm, nullptr); }},
        {"allGather", code, "receive", [=] { return allGather(a, nullptr, 9, ringFloat32, comm, nullptr); }},
        {"broadcast", code, "send", [=] { return ringBroadcast(nullptr, b, 9, ringFloat32, 0, comm, nullptr); }},
        {"broadcast", code, "receive", [=] { return ringBroadcast(a, nullptr, 9, ringFloat32, 0, comm, nullptr); }},
        {"reduce", code, "send", [=] { return ringReduce(nullptr, b, 9, ringFloat32, ringSum, 0, comm, nullptr); }},
        {"reduce", code, "receive", [=] { return ringReduce(a, nullptr, 9, ringFloat32, ringSum, 0, comm, nullptr); }},
        {"gather", code, "send", [=] { return ringGather(nullptr, b, 9, ringFloat32, 0, comm, nullptr); }},
        {"gather", code, "receive", [=] { return ringGather(a, nullptr, 9, ringFloat32, 0, comm, nullptr); }},
        {"scatter", code, "send", [=] { return ringScatter(nullptr, b, 9, ringFloat32, 0, comm, nullptr); }},
        {"scatter", code, "receive", [=] { return ringScatter(a, nullptr, 9, ringFloat32, 0, comm, nullptr); }},
        {"allToAll", code, "send", [=] { return ringAllToAll(nullptr, b, 9, ringFloat32, comm, nullptr); }},
        {"allToAll", code, "receive", [=] { return ringAllToAll(a, nullptr, 9, ringFloat32, comm, nullptr); }},
        {"send", code, "send", [=] { return ringSend(nullptr, 9, ringFloat32, 1, comm, nullptr); }},
        {"recv", code, "receive", [=] { return ringRecv(nullptr, 9, ringFloat32, 1, comm, nullptr); }},
    });
}

// Each call's buffers overlap in a way that is not its in-place rule. The text says what the rule is.
TEST_F(BadArguments, IllegalOverlaps) {
    float* a = at(0);
    ringComm_t comm = comms_[0];
    const ringResult_t code = ringInvalidArgument;
    expect_refused({
        {"allReduce", code, "overlap", [=] { return ringAllReduce(a, a + 1, 9, ringFloat32, ringSum, comm, nullptr); }},
        {"allReduce", code, "overlap", [=] { return ringAllReduce(a + 8, a, 9, ringFloat32, ringSum, comm, nullptr); }},
        {"scatterReduce", code, "overlap", [=] { return scatterReduce(a, a + 9, 9, ringFloat32, ringSum, comm, nullptr); }},
        {"scatterReduce", code, "overlap", [=] { return scatterReduce(a + 1, a, 9, ringFloat32, ringSum, comm, nullptr); }},
        {"allGather", code, "overlap", [=] { return allGather(a + 9, a, 9, ringFloat32, comm, nullptr); }},
        {"allGather", code, "overlap", [=] { return allGather(a, a + 8, 9, ringFloat32, comm, nullptr); }},
        {"broadcast", code, "overlap", [=] { return ringBroadcast(a, a + 3, 9, ringFloat32, 0, comm, nullptr); }},
        {"reduce", code, "overlap", [=] { return ringReduce(a, a + 3, 9, ringFloat32, ringSum, 0, comm, nullptr); }},
        {"gather", code, "overlap", [=] { return ringGather(a + 9, a, 9, ringFloat32, 0, comm, nullptr); }},
        {"scatter", code, "overlap", [=] { return ringScatter(a, a + 9, 9, ringFloat32, 0, comm, nullptr); }},
        {"allToAll", code, "overlap", [=] { return ringAllToAll(a, a, 9, ringFloat32, comm, nullptr); }},
        {"allToAll", code, "overlap", [=] { return ringAllToAll(a, a + 17, 9, ringFloat32, comm, nullptr); }},
    });
    // Side by side is no overlap: the last element of one is before the first of the other.
    float *b = at(100), *c = at(200), *d = at(300);
    std::vector<float> kept(a, a + 400);
    ringGroupStart();
    ringAllReduce(a, a + 9, 9, ringFloat32, ringSum, comms_[0], nullptr);
    ringAllReduce(b, c, 9, ringFloat32, ringSum, comms_[1], nullptr);
    EXPECT_TRUE(worked(ringGroupEnd(), "adjacent buffers"));
    EXPECT_EQ(*d, 1.5f);
    std::copy(kept.begin(), kept.end(), a);
}

// Asked through the communicator, as most callers will: it is well itself, so the answer is about the call.
TEST_F(BadArguments, AreExplainedByTheCommunicatorToo) {
    EXPECT_EQ(ringBroadcast(at(0), at(0), 9, ringFloat32, 7, comms_[0], nullptr), ringInvalidArgument);
    EXPECT_THAT(ringGetLastError(comms_[0]), HasSubstr("root"));
    ASSERT_EQ(ringCommAbort(comms_[0]), ringSuccess);
    EXPECT_THAT(ringGetLastError(comms_[0]), HasSubstr("ringCommAbort"));
    // For TearDown: a pair that works.
    ringCommDestroy(comms_[0]);
    ringCommDestroy(comms_[1]);
    ringConfig_t config = WorldOptions{.timeout_ms = 5000}.config();
    ASSERT_TRUE(worked(ringCommInitAll(comms_, 2, &config), "ringCommInitAll"));
}

TEST_F(BadArguments, TypesOpsRootsAndPeers) {
    float *a = at(0), *b = at(200);
    ringComm_t comm = comms_[0];
    const ringResult_t code = ringInvalidArgument;
    auto type = [](int value) { return static_cast<ringDataType_t>(value); };
    auto op = [](int value) { return static_cast<ringRedOp_t>(value); };
    expect_refused({
        {"type 13", code, "type", [=] { return ringAllReduce(a, b, 9, type(13), ringSum, comm, nullptr); }},
        {"type 15", code, "type", [=] { return allGather(a, b, 9, type(15), comm, nullptr); }},
        {"type 12", code, "type", [=] { return ringSend(a, 9, type(12), 1, comm, nullptr); }},
        {"op 5", code, "op", [=] { return ringAllReduce(a, b, 9, ringFloat32, op(ringNumOps), comm, nullptr); }},
        {"op 1000", code, "op", [=] { return scatterReduce(a, b, 9, ringFloat32, op(1000), comm, nullptr); }},
        {"largest op", code, "op", [=] { return ringReduce(a, b, 9, ringFloat32, ringMaxRedOp, 0, comm, nullptr); }},
        {"root 2", code, "root", [=] { return ringBroadcast(a, b, 9, ringFloat32, 2, comm, nullptr); }},
        {"root -1", code, "root", [=] { return ringReduce(a, b, 9, ringFloat32, ringSum, -1, comm, nullptr); }},
        {"root 7", code, "root", [=] { return ringGather(a, b, 9, ringFloat32, 7, comm, nullptr); }},
        {"root -9", code, "root", [=] { return ringScatter(a, b, 9, ringFloat32, -9, comm, nullptr); }},
        {"peer 2", code, "peer", [=] { return ringSend(a, 9, ringFloat32, 2, comm, nullptr); }},
        {"peer -1", code, "peer", [=] { return ringRecv(a, 9, ringFloat32, -1, comm, nullptr); }},
    });
}

// Sizes in bytes that do not fit into size_t, by the element size alone or together with the world size.
TEST_F(BadArguments, Overflow) {
    float *a = at(0), *b = at(200);
    ringComm_t comm = comms_[0];
    const ringResult_t code = ringInvalidArgument;
    expect_refused({
        {"allReduce", code, "count", [=] { return ringAllReduce(a, b, SIZE_MAX, ringFloat32, ringSum, comm, nullptr); }},
        {"allReduce", code, "count",
         [=] { return ringAllReduce(a, b, SIZE_MAX / 4 + 1, ringFloat32, ringSum, comm, nullptr); }},
        {"scatterReduce", code, "ount",
         [=] { return scatterReduce(a, b, SIZE_MAX / 8 + 1, ringFloat32, ringSum, comm, nullptr); }},
        {"allGather", code, "ount", [=] { return allGather(a, b, SIZE_MAX / 2 + 1, ringInt8, comm, nullptr); }},
        {"allToAll", code, "count", [=] { return ringAllToAll(a, b, SIZE_MAX / 8 + 1, ringFloat32, comm, nullptr); }},
        {"gather", code, "count", [=] { return ringGather(a, b, SIZE_MAX / 8 + 1, ringFloat32, 0, comm, nullptr); }},
        {"scatter", code, "count", [=] { return ringScatter(a, b, SIZE_MAX / 8 + 1, ringFloat32, 0, comm, nullptr); }},
        {"send", code, "count", [=] { return ringSend(a, SIZE_MAX / 2, ringFloat32, 1, comm, nullptr); }},
    });
}

// NULL, made up, and destroyed communicators: a ticket that is not alive is noticed by every call.
TEST_F(BadArguments, CommunicatorsThatAreNotAlive) {
    ringComm_t gone = nullptr;
    ASSERT_EQ(ringCommInitAll(&gone, 1, nullptr), ringSuccess);
    ASSERT_EQ(ringCommDestroy(gone), ringSuccess);
    float *a = at(0), *b = at(200);
    int number = -7;
    ringResult_t async = ringSuccess;
    ringComm_t made = nullptr;
    ringRedOp_t op = ringSum;
    void* handle = nullptr;
    ringCommStats_t stats = {};
    stats.size = sizeof(stats);
    for (ringComm_t comm : {ringComm_t(nullptr), reinterpret_cast<ringComm_t>(uintptr_t(0x123456)), gone}) {
        std::vector<std::function<ringResult_t()>> calls = {
            [&] { return ringCommDestroy(comm); },
            [&] { return ringCommFinalize(comm); },
            [&] { return ringCommAbort(comm); },
            [&] { return ringCommGetAsyncError(comm, &async); },
            [&] { return ringCommCount(comm, &number); },
            [&] { return ringCommUserRank(comm, &number); },
            [&] { return ringCommDevice(comm, &number); },
            [&] { return ringCommSplit(comm, 0, 0, &made, nullptr); },
            [&] { return ringCommShrink(comm, nullptr, 0, &made, nullptr); },
            [&] { return ringCommRegister(comm, a, 16, &handle); },
            [&] { return ringCommDeregister(comm, a); },
            [&] { return ringRedOpCreatePreMulSum(&op, a, ringFloat32, comm); },
            [&] { return ringRedOpDestroy(ringRedOp_t(5), comm); },
            [&] { return ringAllReduce(a, b, 9, ringFloat32, ringSum, comm, nullptr); },
            [&] { return scatterReduce(a, b, 9, ringFloat32, ringSum, comm, nullptr); },
            [&] { return allGather(a, b, 9, ringFloat32, comm, nullptr); },
            [&] { return ringBroadcast(a, b, 9, ringFloat32, 0, comm, nullptr); },
            [&] { return ringReduce(a, b, 9, ringFloat32, ringSum, 0, comm, nullptr); },
            [&] { return ringGather(a, b, 9, ringFloat32, 0, comm, nullptr); },
            [&] { return ringScatter(a, b, 9, ringFloat32, 0, comm, nullptr); },
            [&] { return ringAllToAll(a, b, 9, ringFloat32, comm, nullptr); },
            [&] { return ringBarrier(comm, nullptr); },
            [&] { return ringSend(a, 9, ringFloat32, 0, comm, nullptr); },
            [&] { return ringRecv(b, 9, ringFloat32, 0, comm, nullptr); },
            [&] { return ringCommGetStats(comm, &stats); },
        };
        for (size_t i = 0; i < calls.size(); ++i) {
            EXPECT_EQ(calls[i](), ringInvalidUsage) << "call " << i << " on " << comm;
            EXPECT_THAT(ringGetLastError(nullptr), HasSubstr("communicator")) << "call " << i << " on " << comm;
        }
    }
    EXPECT_EQ(number, -7);
    EXPECT_EQ(made, nullptr);
    EXPECT_EQ(handle, nullptr);
    EXPECT_EQ(op, ringSum);
}

TEST_F(BadArguments, Initialisation) {
    ringUniqueId id, zero = {}, damaged;
    ASSERT_EQ(ringGetUniqueId(&id), ringSuccess);
    const ringComm_t untouched = reinterpret_cast<ringComm_t>(uintptr_t(0x77));
    ringComm_t comm = untouched;
    const ringResult_t code = ringInvalidArgument;
    expect_refused({
        {"no id", code, "id", [=] { return ringGetUniqueId(nullptr); }},
        {"no comm", code, "comm", [=] { return ringCommInitRank(nullptr, 2, id, 0); }},
        {"world of 0", code, "0", [&] { return ringCommInitRank(&comm, 0, id, 0); }},
        {"world of -3", code, "-3", [&] { return ringCommInitRank(&comm, -3, id, 0); }},
        {"rank -1", code, "-1", [&] { return ringCommInitRank(&comm, 2, id, -1); }},
        {"rank 2 of 2", code, "2", [&] { return ringCommInitRank(&comm, 2, id, 2); }},
        {"id of zeros", code, "id", [&] { return ringCommInitRank(&comm, 2, zero, 0); }},
        {"no comms", code, "comm", [=] { return ringCommInitAll(nullptr, 2, nullptr); }},
        {"none at all", code, "0", [&] { return ringCommInitAll(&comm, 0, nullptr); }},
    });
    // One flipped bit anywhere in the id.
    for (size_t byte = 0; byte < sizeof(id.internal); byte += quick() ? 17 : 1) {
        damaged = id;
        damaged.internal[byte] ^= 1 << (byte % 8);
        EXPECT_EQ(ringCommInitRank(&comm, 2, damaged, 1), ringInvalidArgument) << "byte " << byte;
        EXPECT_THAT(ringGetLastError(nullptr), HasSubstr("id")) << "byte " << byte;
    }
    EXPECT_EQ(comm, untouched);
}

TEST_F(BadArguments, Configs) {
    const ringComm_t untouched = reinterpret_cast<ringComm_t>(uintptr_t(0x77));
    ringComm_t comm = untouched;
    auto refused = [&](const char* what, const char* word, auto change) {
        ringConfig_t config = RINGCCL_CONFIG_INITIALIZER;
        change(config);
        EXPECT_NE(ringCommInitAll(&comm, 1, &config), ringSuccess) << what;
        EXPECT_THAT(ringGetLastError(nullptr), HasSubstr(word)) << what;
        EXPECT_EQ(comm, untouched) << what;
    };
    refused("no size", "size", [](ringConfig_t& config) { config.size = 0; });
    refused("absurd size", "size", [](ringConfig_t& config) { config.size = SIZE_MAX; });
    refused("device kind", "deviceKind", [](ringConfig_t& config) { config.deviceKind = 9; });
    refused("timeout", "TIMEOUT_MS", [](ringConfig_t& config) { config.timeoutMs = -2; });
    refused("timeout", "TIMEOUT_MS", [](ringConfig_t& config) { config.timeoutMs = 0; });
    refused("init timeout", "INIT_TIMEOUT_MS", [](ringConfig_t& config) { config.initTimeoutMs = -5; });
    refused("transport", "pigeon", [](ringConfig_t& config) { config.transport = "p2p,pigeon"; });
    refused("algorithm", "magic", [](ringConfig_t& config) { config.algorithm = "magic"; });
}

TEST_F(BadArguments, EverythingElse) {
    ringComm_t comm = comms_[0], none = nullptr;
    const ringResult_t code = ringInvalidArgument;
    ringRedOp_t op = ringSum, mine = ringSum;
    float one = 1;
    int stack = 0;
    void* memory = nullptr;
    ringCommStats_t stats = {};
    int self = 0, far = 2;
    auto* madeUp = reinterpret_cast<ringStream_t>(uintptr_t(0x4321));
    ASSERT_EQ(ringRedOpCreatePreMulSum(&mine, &one, ringFloat32, comms_[1]), ringSuccess);
    expect_refused({
        {"ringGetVersion", code, "version", [] { return ringGetVersion(nullptr); }},
        {"count", code, "NULL", [=] { return ringCommCount(comm, nullptr); }},
        {"rank", code, "NULL", [=] { return ringCommUserRank(comm, nullptr); }},
        {"device", code, "NULL", [=] { return ringCommDevice(comm, nullptr); }},
        {"async", code, "asyncError", [=] { return ringCommGetAsyncError(comm, nullptr); }},
        {"stats", code, "stats", [=] { return ringCommGetStats(comm, nullptr); }},
        {"stats size", code, "size", [&] { return ringCommGetStats(comm, &stats); }},
        {"split into NULL", code, "newComm", [=] { return ringCommSplit(comm, 0, 0, nullptr, nullptr); }},
        {"split color", code, "color", [&] { return ringCommSplit(comm, -2, 0, &none, nullptr); }},
        {"shrink into NULL", code, "newComm", [=] { return ringCommShrink(comm, nullptr, 0, nullptr, nullptr); }},
        {"shrink oneself", code, "0", [&] { return ringCommShrink(comm, &self, 1, &none, nullptr); }},
        {"shrink a stranger", code, "2", [&] { return ringCommShrink(comm, &far, 1, &none, nullptr); }},
        {"shrink NULL list", code, "excluded", [&] { return ringCommShrink(comm, nullptr, 1, &none, nullptr); }},
        {"op NULL", code, "op", [&] { return ringRedOpCreatePreMulSum(nullptr, &one, ringFloat32, comm); }},
        {"scalar NULL", code, "scalar", [&] { return ringRedOpCreatePreMulSum(&op, nullptr, ringFloat32, comm); }},
        {"scalar type", code, "type", [&] { return ringRedOpCreatePreMulSum(&op, &one, ringDataType_t(14), comm); }},
        {"built-in op", code, "op", [=] { return ringRedOpDestroy(ringSum, comm); }},
        {"unknown op", code, "op", [=] { return ringRedOpDestroy(ringMaxRedOp, comm); }},
        {"alloc NULL", code, "ptr", [] { return ringMemAlloc(nullptr, 10); }},
        {"alloc 0", code, "bytes", [&] { return ringMemAlloc(&memory, 0); }},
        {"alloc all there is", ringSystemError, "memory", [&] { return ringMemAlloc(&memory, SIZE_MAX / 2); }},
        {"free NULL", code, "ringMemAlloc", [] { return ringMemFree(nullptr); }},
        {"free the stack", code, "ringMemAlloc", [&] { return ringMemFree(&stack); }},
        {"register NULL", code, "buffer", [&] { return ringCommRegister(comm, nullptr, 8, &memory); }},
        {"register 0", code, "bytes", [&] { return ringCommRegister(comm, &stack, 0, &memory); }},
        {"register into NULL", code, "handle", [&] { return ringCommRegister(comm, &stack, 4, nullptr); }},
        {"deregister", code, "handle", [&] { return ringCommDeregister(comm, &stack); }},
        {"stream NULL", code, "stream", [] { return ringStreamCreate(nullptr); }},
        {"synchronize NULL", code, "stream", [] { return ringStreamSynchronize(nullptr); }},
        {"query", code, "stream", [=] { return ringStreamQuery(madeUp); }},
        {"destroy", code, "stream", [=] { return ringStreamDestroy(madeUp); }},
        {"no stream", code, "stream", [=] { return ringBarrier(comm, madeUp); }},
    });
    EXPECT_EQ(memory, nullptr);
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(op, ringSum);

    // An operation belongs to the communicator and the type that it was made for.
    ringResult_t foreign = ringAllReduce(at(0), at(200), 9, ringFloat32, mine, comm, nullptr);
    EXPECT_TRUE(foreign == ringInvalidUsage || foreign == ringInvalidArgument) << ringGetErrorString(foreign);
    EXPECT_NE(ringAllReduce(at(0), at(200), 9, ringFloat64, mine, comms_[1], nullptr), ringSuccess);
    EXPECT_EQ(ringRedOpDestroy(mine, comms_[1]), ringSuccess);
    EXPECT_EQ(ringRedOpDestroy(mine, comms_[1]), ringInvalidArgument) << "destroyed twice";

    ASSERT_EQ(ringMemAlloc(&memory, 10), ringSuccess);
    EXPECT_EQ(ringMemFree(static_cast<char*>(memory) + 1), ringInvalidArgument) << "not the beginning";
    EXPECT_EQ(ringMemFree(memory), ringSuccess);
    EXPECT_EQ(ringMemFree(memory), ringInvalidArgument) << "freed twice";
}

// count 0 with NULL buffers is a matched no-op, not an error.
TEST_F(BadArguments, NothingNeedsNoBuffer) {
    for (int rank = 0; rank < 2; ++rank) ASSERT_NE(comms_[rank], nullptr);
    ringGroupStart();
    for (ringComm_t comm : comms_) {
        ringAllReduce(nullptr, nullptr, 0, ringFloat32, ringSum, comm, nullptr);
        scatterReduce(nullptr, nullptr, 0, ringFloat32, ringSum, comm, nullptr);
        allGather(nullptr, nullptr, 0, ringFloat32, comm, nullptr);
        ringBroadcast(nullptr, nullptr, 0, ringFloat32, 1, comm, nullptr);
        ringReduce(nullptr, nullptr, 0, ringFloat32, ringSum, 1, comm, nullptr);
        ringGather(nullptr, nullptr, 0, ringFloat32, 1, comm, nullptr);
        ringScatter(nullptr, nullptr, 0, ringFloat32, 1, comm, nullptr);
        ringAllToAll(nullptr, nullptr, 0, ringFloat32, comm, nullptr);
    }
    EXPECT_TRUE(worked(ringGroupEnd(), "ringGroupEnd"));
}

TEST(ResultCodes, HaveNamesAndMeanings) {
    for (int code = ringSuccess; code <= ringMismatch; ++code) {
        std::string text = ringGetErrorString(static_cast<ringResult_t>(code));
        EXPECT_THAT(text, ::testing::StartsWith("ring")) << code;
        EXPECT_THAT(text, HasSubstr(": ")) << code;
    }
    EXPECT_NE(ringGetErrorString(static_cast<ringResult_t>(15)), nullptr);
    int version = 0;
    EXPECT_EQ(ringGetVersion(&version), ringSuccess);
    EXPECT_EQ(version, RINGCCL_VERSION);
}

}  // namespace
}  // namespace ringccl::test
