// Collectives right behind the caller's own work in a stream and right before more of it. Nothing here waits on the host before
// the end: inputs come late, results are taken and every buffer is overwritten at once, for the next collective. Values are the
// same all over a block: what is looked for is old and early data, not data in the wrong place.
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "device_values.h"
#include "support/case.h"
#include "support/thread_ranks.h"
#include "threads/paths.h"

namespace ringccl::test {
namespace {

// A kernel of the caller's that takes its time.
void linger(void*) {
    std::this_thread::sleep_for(std::chrono::microseconds(500));
}

uint8_t value(int rank, int round) {
    return static_cast<uint8_t>(1 + 7 * rank + 31 * round);
}
uint8_t sum(int ranks, int round) {
    uint8_t total = 0;
    for (int rank = 0; rank < ranks; ++rank) total = static_cast<uint8_t>(total + value(rank, round));
    return total;
}

// Calls of which the first that fails is the verdict, and none is made after it.
class Calls {
public:
    template <class Call>
    Calls& then(const char* name, Call&& call) {
        if (verdict_) verdict_ = verdict_of(call(), name);
        return *this;
    }
    const Verdict& verdict() const { return verdict_; }

private:
    static Verdict verdict_of(cudaError_t error, const char* name) { return cuda_worked(error, name); }
    static Verdict verdict_of(ringResult_t result, const char* name) { return worked(result, name); }

    Verdict verdict_ = good();
};

// A stream of the test's own.
class OwnStream {
public:
    OwnStream() { cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); }
    ~OwnStream() { cudaStreamDestroy(stream_); }
    OwnStream(const OwnStream&) = delete;
    OwnStream& operator=(const OwnStream&) = delete;
    operator cudaStream_t() const { return stream_; }

    // What `other` holds now is before what comes on this one.
    cudaError_t follow(cudaStream_t other) const {
        cudaEvent_t event;
        cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        if (error == cudaSuccess) error = cudaEventRecord(event, other);
        if (error == cudaSuccess) error = cudaStreamWaitEvent(stream_, event, 0);
        if (error == cudaSuccess) error = cudaEventDestroy(event);
        return error;
    }

private:
    cudaStream_t stream_ = nullptr;
};

struct Buffers {
    std::byte *send, *recv, *kept;

    Buffers(const Member& me, size_t bytes, size_t kept_bytes) {
        DeviceSide& side = *DeviceSide::of_program();
        send = side.memory(me, 0, bytes, 0);
        recv = side.memory(me, 1, bytes, 0);
        kept = side.memory(me, 2, kept_bytes, 0);
    }
};

Verdict all_are(const std::byte* bytes, size_t count, uint8_t wanted, const std::string& what) {
    for (size_t i = 0; i < count; ++i)
        if (bytes[i] != std::byte{wanted})
            return bad("{}: byte {} of {} is {}, should be {}", what, i, count, int(bytes[i]), wanted);
    return good();
}

class BackToBack : public OnEveryPath {
protected:
    // Slices so small that several are under way at once.
    void SetUp() override {
        OnEveryPath::SetUp();
        env_.set("RINGCCL_SLICE_BYTES", "4096");
    }
    WorldOptions world() const { return {.size = GetParam().size, .transport = GetParam().path.transport}; }
};

// Kinds that every rank gives `size` blocks to or gets them from.
constexpr Kind kKinds[] = {Kind::all_reduce, Kind::all_gather, Kind::scatter_reduce, Kind::all_to_all, Kind::broadcast};

ringResult_t call(Kind kind, const Buffers& at, size_t block, const Member& me, cudaStream_t stream) {
    switch (kind) {
        case Kind::all_gather:
            return ringAllGather(at.send, at.recv, block, ringUint8, me.comm, stream);
        case Kind::scatter_reduce:
            return scatterReduce(at.send, at.recv, block, ringUint8, ringSum, me.comm, stream);
        case Kind::all_to_all:
            return ringAllToAll(at.send, at.recv, block, ringUint8, me.comm, stream);
        case Kind::broadcast:
            return ringBroadcast(at.send, at.recv, block * me.size, ringUint8, 0, me.comm, stream);
        default:
            return ringAllReduce(at.send, at.recv, block * me.size, ringUint8, ringSum, me.comm, stream);
    }
}

// What call() leaves in a round in which each rank sent its value.
Verdict is_result(Kind kind, const std::byte* recv, size_t block, const Member& me, int round) {
    const std::string what = fmt::format("{} of round {}, rank {}", kind_name(kind), round, me.rank);
    for (int r = 0; r < (kind == Kind::scatter_reduce ? 1 : me.size); ++r) {
        const bool moves = kind == Kind::all_gather || kind == Kind::all_to_all;
        const uint8_t wanted = moves ? value(r, round) : kind == Kind::broadcast ? value(0, round) : sum(me.size, round);
        if (Verdict v = all_are(recv + r * block, block, wanted, what); !v) return v;
    }
    return good();
}

// Inputs that come late, results that are taken at once, and buffers that are overwritten at once for the next round.
TEST_P(BackToBack, HoldsBeforeAndBehind) {
    run_ranks(world(), [](const Member& me) {
        for (size_t block : {size_t(1), size_t(50001)}) {
            const size_t bytes = block * me.size;
            const int rounds = static_cast<int>(std::size(kKinds)) * 2;
            const Buffers at(me, bytes, bytes * rounds);
            const auto stream = stream_of(me);
            Calls calls;
            for (int round = 0; round < rounds; ++round) {
                const Kind kind = kKinds[round / 2];
                // A different rank is late in each round.
                if (round % me.size == me.rank)
                    calls.then("cudaLaunchHostFunc", [&] { return cudaLaunchHostFunc(stream, linger, nullptr); });
                calls.then("cudaMemsetAsync", [&] { return cudaMemsetAsync(at.send, value(me.rank, round), bytes, stream); })
                    .then(kind_name(kind), [&] { return call(kind, at, block, me, stream); })
                    .then("cudaMemsetAsync", [&] { return cudaMemsetAsync(at.send, 0x55, bytes, stream); })
                    .then("cudaMemcpyAsync",
                          [&] { return cudaMemcpyAsync(at.kept + round * bytes, at.recv, bytes, cudaMemcpyDefault, stream); })
                    .then("cudaMemsetAsync", [&] { return cudaMemsetAsync(at.recv, 0x66, bytes, stream); });
            }
            std::vector<std::byte> kept(bytes * rounds);
            calls.then("cudaMemcpyAsync",
                       [&] { return cudaMemcpyAsync(kept.data(), at.kept, kept.size(), cudaMemcpyDefault, stream); });
            if (!calls.verdict()) return calls.verdict();
            if (Verdict v = await_side(me); !v) return v;
            for (int round = 0; round < rounds; ++round)
                if (Verdict v = is_result(kKinds[round / 2], &kept[round * bytes], block, me, round); !v) return v;
        }
        return good();
    });
}

// Each collective's result is the next one's input.
TEST_P(BackToBack, ChainsCollectives) {
    run_ranks(world(), [](const Member& me) {
        for (size_t block : {size_t(3), size_t(30001)}) {
            const size_t bytes = block * me.size;
            const Buffers at(me, bytes, bytes);
            const auto stream = stream_of(me);
            std::byte* const mine = at.send + me.rank * block;
            Calls calls;
            calls.then("cudaMemsetAsync", [&] { return cudaMemsetAsync(at.send, value(me.rank, 0), bytes, stream); });
            uint8_t wanted = sum(me.size, 0);
            for (int round = 0; round < 8; ++round) {
                calls.then("ringAllReduce",
                           [&] { return ringAllReduce(at.send, at.send, bytes, ringUint8, ringSum, me.comm, stream); });
                if (round > 0) wanted = static_cast<uint8_t>(wanted * me.size);
                calls
                    .then("scatterReduce",
                          [&] { return scatterReduce(at.send, mine, block, ringUint8, ringSum, me.comm, stream); })
                    .then("ringAllGather", [&] { return ringAllGather(mine, at.send, block, ringUint8, me.comm, stream); });
                wanted = static_cast<uint8_t>(wanted * me.size);
            }
            std::vector<std::byte> result(bytes);
            calls.then("cudaMemcpyAsync",
                       [&] { return cudaMemcpyAsync(result.data(), at.send, bytes, cudaMemcpyDefault, stream); });
            if (!calls.verdict()) return calls.verdict();
            if (Verdict v = await_side(me); !v) return v;
            if (Verdict v = all_are(result.data(), bytes, wanted, fmt::format("rank {}", me.rank)); !v) return v;
        }
        return good();
    });
}

// Collectives of one communicator on two streams in turn; inputs come from one and results go to the other, ordered by events.
TEST_P(BackToBack, CrossesStreams) {
    run_ranks(world(), [](const Member& me) {
        const size_t block = 20001, bytes = block * me.size;
        constexpr int kRounds = 8;
        const Buffers at(me, bytes, bytes * kRounds);
        const OwnStream streams[2];
        Calls calls;
        for (int round = 0; round < kRounds; ++round) {
            const OwnStream &here = streams[round % 2], &there = streams[1 - round % 2];
            if (round % me.size == me.rank)
                calls.then("cudaLaunchHostFunc", [&] { return cudaLaunchHostFunc(there, linger, nullptr); });
            calls.then("cudaMemsetAsync", [&] { return cudaMemsetAsync(at.send, value(me.rank, round), bytes, there); })
                .then("following a stream", [&] { return here.follow(there); })
                .then("ringAllReduce", [&] { return call(Kind::all_reduce, at, block, me, here); })
                .then("following a stream", [&] { return there.follow(here); })
                .then("cudaMemcpyAsync",
                      [&] { return cudaMemcpyAsync(at.kept + round * bytes, at.recv, bytes, cudaMemcpyDefault, there); })
                .then("following a stream", [&] { return here.follow(there); });
        }
        std::vector<std::byte> kept(bytes * kRounds);
        for (const OwnStream& stream : streams)
            calls.then("cudaStreamSynchronize", [&] { return cudaStreamSynchronize(stream); });
        calls.then("cudaMemcpyAsync",
                   [&] { return cudaMemcpyAsync(kept.data(), at.kept, kept.size(), cudaMemcpyDefault, stream_of(me)); });
        if (!calls.verdict()) return calls.verdict();
        if (Verdict v = await_side(me); !v) return v;
        for (int round = 0; round < kRounds; ++round)
            if (Verdict v = is_result(Kind::all_reduce, &kept[round * bytes], block, me, round); !v) return v;
        return good();
    });
}

INSTANTIATE_TEST_SUITE_P(, BackToBack,
                         ::testing::Values(Place{kPointer, 1}, Place{kPointer, 2}, Place{kPointer, 3}, Place{kPointer, 8},
                                           Place{kMemfd, 3}, Place{kTcp, 2}, Place{kTcp, 3}),
                         place_name);

}  // namespace
}  // namespace ringccl::test
