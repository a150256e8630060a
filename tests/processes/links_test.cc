// Real processes: shared memory by memfd, cross-memory attach, TCP, and what auto makes of them. The threads ring has the
// product of cases; here it is enough that every kind of step crosses every kind of link, with messages from one element to
// many windows.
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "support/case.h"
#include "support/environment.h"
#include "support/process_ranks.h"

namespace ringccl::test {
namespace {

struct Place {
    Path path;
    int size;
};
std::string place_name(const ::testing::TestParamInfo<Place>& info) {
    return std::string(info.param.path.name) + "_" + std::to_string(info.param.size);
}
void PrintTo(const Place& place, std::ostream* out) {
    *out << place.path.name << " " << place.size;
}

constexpr Path kAuto = {"auto", "auto", true, true};

class Processes : public ::testing::TestWithParam<Place> {
protected:
    void SetUp() override {
        GetParam().path.apply(env_);
        env_.set("RINGCCL_SLICE_BYTES", "4096");
    }
    WorldOptions world(const char* algorithm = "auto") const {
        return {.size = GetParam().size, .transport = GetParam().path.transport, .algorithm = algorithm};
    }
    ScopedEnv env_;
};

TEST_P(Processes, EveryCollective) {
    run_processes(world(), [](const Member& me) {
        for (size_t count : {size_t(0), size_t(1), size_t(37), size_t(1023), size_t(4097), size_t(150001)}) {
            for (bool in_place : {false, true}) {
                for (ringDataType_t type : {ringFloat32, ringUint8}) {
                    Case c = {
                        .type = type, .count = count, .in_place = in_place, .root = int(count % me.size), .shift = count % 16};
                    for (Kind kind : kReductions) {
                        c.kind = kind;
                        for (Op op : {Op::sum, Op::avg}) {
                            c.op = op;
                            if (Verdict v = run_case(me, c); !v) return v;
                        }
                    }
                    for (Kind kind : kMoves) {
                        c.kind = kind;
                        if (in_place && kind == Kind::all_to_all) continue;
                        if (Verdict v = run_case(me, c); !v) return v;
                    }
                }
            }
        }
        return good();
    });
}

// Buffers from ringMemAlloc are read where they are, from before and from after the communicator was made, whole and in part.
TEST_P(Processes, LibraryMemory) {
    constexpr size_t kCount = 200003;
    run_processes(world(), [](const Member& me) {
        void *a = nullptr, *b = nullptr;
        if (Verdict v = worked(ringMemAlloc(&a, kCount * sizeof(int32_t)), "ringMemAlloc"); !v) return v;
        if (Verdict v = worked(ringMemAlloc(&b, kCount * sizeof(int32_t)), "ringMemAlloc"); !v) return v;
        auto* send = static_cast<int32_t*>(a);
        auto* recv = static_cast<int32_t*>(b);
        for (int round = 0; round < 6; ++round) {
            for (size_t i = 0; i < kCount; ++i) send[i] = int32_t(i) + me.rank * 7 + round;
            size_t skip = round * 1001;  // parts of a block
            ringResult_t done = ringAllReduce(send + skip, recv + skip, kCount - skip, ringInt32, ringSum, me.comm, nullptr);
            if (Verdict v = worked(done, "ringAllReduce"); !v) return v;
            for (size_t i = skip; i < kCount; ++i) {
                int32_t want = me.size * (int32_t(i) + round) + 7 * me.size * (me.size - 1) / 2;
                if (recv[i] != want) return bad("round {}: element {} is {}, should be {}", round, i, recv[i], want);
            }
        }
        if (Verdict v = worked(ringMemFree(a), "ringMemFree"); !v) return v;
        // A new block may be mapped where the old one was; peers must not read the old one.
        if (Verdict v = worked(ringMemAlloc(&a, kCount * sizeof(int32_t)), "ringMemAlloc"); !v) return v;
        send = static_cast<int32_t*>(a);
        for (size_t i = 0; i < kCount; ++i) send[i] = me.rank == 0 ? int32_t(3 * i) : 0;
        ringResult_t done = ringBroadcast(send, recv, kCount, ringInt32, 0, me.comm, nullptr);
        if (Verdict v = worked(done, "ringBroadcast"); !v) return v;
        for (size_t i = 0; i < kCount; ++i)
            if (recv[i] != int32_t(3 * i)) return bad("new block: element {} is {}", i, recv[i]);
        if (Verdict v = worked(ringMemFree(a), "ringMemFree"); !v) return v;
        return worked(ringMemFree(b), "ringMemFree");
    });
}

TEST_P(Processes, StreamsAndSplits) {
    run_processes(world(), [](const Member& me) {
        ringComm_t half = nullptr;
        if (Verdict v = worked(ringCommSplit(me.comm, me.rank % 2, me.rank, &half, nullptr), "ringCommSplit"); !v) return v;
        ringStream_t stream = nullptr;
        if (Verdict v = worked(ringStreamCreate(&stream), "ringStreamCreate"); !v) return v;
        Member part{half, me.rank / 2, (me.size + 1 - me.rank % 2) / 2, stream};
        for (size_t count : {size_t(1), size_t(30011)}) {
            if (Verdict v = run_case(part, {.count = count}); !v) return v;
            if (Verdict v = run_case(me, {.count = count}); !v) return v;
        }
        if (Verdict v = worked(ringCommDestroy(half), "ringCommDestroy"); !v) return v;
        return worked(ringStreamDestroy(stream), "ringStreamDestroy");
    });
}

INSTANTIATE_TEST_SUITE_P(, Processes,
                         ::testing::Values(Place{kMemfd, 2}, Place{kMemfd, 3}, Place{kMemfd, 8}, Place{kCma, 2}, Place{kCma, 5},
                                           Place{kTcp, 2}, Place{kTcp, 3}, Place{kTcp, 8}, Place{kAuto, 4}, Place{kAuto, 16}),
                         place_name);

// What one peer only copies is not copied into the stage, where the kernel permits that: such a send ends when its memory has
// been read, and one from the stage before.
TEST(Fetching, ReadsTheSendersMemoryWhereItStands) {
    uint64_t word = 1, copy = 0;
    const iovec here{&copy, sizeof copy}, there{&word, sizeof word};
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != sizeof word) GTEST_SKIP() << "not permitted here";
    ScopedEnv env;
    kCma.apply(env);
    void* shared = mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    auto* taking = new (shared) std::atomic<bool>(false);
    run_processes({.size = 2, .transport = "p2p"}, [taking](const Member& me) {
        std::vector<char> data(64 << 10, me.rank == 0 ? 'x' : '-');
        if (me.rank == 0) {
            ringResult_t sent = ringSend(data.data(), data.size(), ringInt8, 1, me.comm, nullptr);
            if (Verdict v = worked(sent, "ringSend"); !v) return v;
            return taking->load() ? good() : bad("the send was over before its receiver had come");
        }
        usleep(300 * 1000);
        taking->store(true);
        ringResult_t got = ringRecv(data.data(), data.size(), ringInt8, 0, me.comm, nullptr);
        if (Verdict v = worked(got, "ringRecv"); !v) return v;
        return data == std::vector<char>(data.size(), 'x') ? good() : bad("other bytes came than were sent");
    });
    munmap(shared, sizeof(std::atomic<bool>));
}

class ProcessAlgorithms : public ::testing::TestWithParam<const char*> {};

TEST_P(ProcessAlgorithms, AreExact) {
    ScopedEnv env = {{"RINGCCL_SLICE_BYTES", "4096"}};
    for (const Path& path : {kMemfd, kCma, kTcp}) {
        path.apply(env);
        SCOPED_TRACE(path.name);
        run_processes({.size = 3, .transport = path.transport, .algorithm = GetParam()}, [](const Member& me) {
            for (size_t count : {size_t(1), size_t(1025), size_t(200003)})
                for (Kind kind : {Kind::all_reduce, Kind::scatter_reduce, Kind::reduce, Kind::all_gather, Kind::broadcast})
                    if (Verdict v = run_case(me, {.kind = kind, .count = count, .root = 2}); !v) return v;
            return good();
        });
    }
}

INSTANTIATE_TEST_SUITE_P(, ProcessAlgorithms, ::testing::Values("ring", "oneshot", "twoshot", "doubling", "tree", "star"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace ringccl::test
