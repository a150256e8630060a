// Promises about numbers (docs/numerics.md) that need data which rounds: results are the same bits on every rank and in every
// repetition, NaN reaches everybody, and no partial sum of an integer average overflows.
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <random>
#include <vector>

#include "paths.h"
#include "support/narrow_float.h"
#include "support/thread_ranks.h"

namespace ringccl::test {
namespace {

struct Setup {
    const char* algorithm;
    Path path;
};
std::string setup_name(const ::testing::TestParamInfo<Setup>& info) {
    return std::string(info.param.algorithm) + "_" + info.param.path.name;
}
void PrintTo(const Setup& setup, std::ostream* out) {
    *out << setup.algorithm << " " << setup.path.name;
}

const Setup kSetups[] = {{"auto", kPointer},    {"auto", kMemfd},    {"auto", kTcp},     {"ring", kMemfd},
                         {"oneshot", kPointer}, {"twoshot", kMemfd}, {"doubling", kTcp}, {"tree", kTcp},
                         {"star", kTcp},        {"ring", kTcp},      {"ring", kPointer}};

class Numbers : public ::testing::TestWithParam<Setup> {
protected:
    void SetUp() override { GetParam().path.apply(env_); }
    WorldOptions world(int size) const {
        return {.size = size, .transport = GetParam().path.transport, .algorithm = GetParam().algorithm};
    }
    ScopedEnv env_;
};

// The bits that the first rank got in the first repetition; everybody else must have the same.
class Agreement {
public:
    Verdict check(const void* data, size_t bytes, const Member& me, int repetition) {
        std::lock_guard lock(mutex_);
        auto* begin = static_cast<const std::byte*>(data);
        if (first_.empty()) first_.assign(begin, begin + bytes);
        if (std::memcmp(first_.data(), begin, bytes) == 0) return good();
        return bad("rank {} has other bits in repetition {}", me.rank, repetition);
    }

private:
    std::mutex mutex_;
    std::vector<std::byte> first_;
};

TEST_P(Numbers, SameBitsOnAllRanksInAllRepetitions) {
    const int repetitions = quick() ? 10 : 100;
    for (size_t count : {size_t(11), size_t(50021)}) {
        for (ringDataType_t type : {ringFloat32, ringFloat16}) {
            Agreement agreement;
            run_ranks(world(5), [&](const Member& me) {
                // Magnitudes over many powers of two: almost every addition rounds, so any other order shows.
                std::mt19937 random(7 + me.rank);
                std::normal_distribution<float> normal;
                std::vector<float> wide(count);
                for (float& value : wide) value = std::ldexp(normal(random), int(random() % 12) - 6);
                std::vector<Half> narrow;
                for (float value : wide) narrow.push_back(Half::nearest(value));
                const void* send = type == ringFloat32 ? static_cast<const void*>(wide.data()) : narrow.data();
                std::vector<float> recv(count);  // large enough for either type

                for (int i = 0; i < repetitions; ++i) {
                    Verdict done =
                        worked(ringAllReduce(send, recv.data(), count, type, ringSum, me.comm, nullptr), "allReduce");
                    if (!done) return done;
                    Verdict same = agreement.check(recv.data(), count * (type == ringFloat32 ? 4 : 2), me, i);
                    if (!same) return same;
                }
                return good();
            });
        }
    }
}

// A NaN of any one rank is a NaN for all ranks, whatever the operation and wherever it comes in the order.
TEST_P(Numbers, NanReachesEverybody) {
    run_ranks(world(4), [](const Member& me) {
        const float nan = std::numeric_limits<float>::quiet_NaN();
        for (int from = 0; from < me.size; ++from) {
            for (ringRedOp_t op : {ringSum, ringProd, ringMax, ringMin, ringAvg}) {
                std::vector<float> data(100, float(me.rank));
                if (me.rank == from) data[41] = nan;
                Verdict done =
                    worked(ringAllReduce(data.data(), data.data(), 100, ringFloat32, op, me.comm, nullptr), "allReduce");
                if (!done) return done;
                if (!std::isnan(data[41])) return bad("op {}: the NaN of rank {} became {}", int(op), from, data[41]);
                if (std::isnan(data[40]) || std::isnan(data[42])) return bad("op {}: the NaN spread", int(op));
            }
        }
        return good();
    });
}

// The average of the largest value with itself is that value.
TEST_P(Numbers, IntegerAverageIsSummedWide) {
    run_ranks(world(3), [](const Member& me) {
        std::vector<int8_t> small(70, 127);
        std::vector<uint64_t> large(70, std::numeric_limits<uint64_t>::max());
        std::vector<int32_t> negative(70, me.rank == 0 ? -1 : -2);  // -5/3 truncates to -1
        Verdict a = worked(ringAllReduce(small.data(), small.data(), 70, ringInt8, ringAvg, me.comm, nullptr), "int8");
        Verdict b = worked(ringAllReduce(large.data(), large.data(), 70, ringUint64, ringAvg, me.comm, nullptr), "uint64");
        Verdict c = worked(ringAllReduce(negative.data(), negative.data(), 70, ringInt32, ringAvg, me.comm, nullptr), "int32");
        if (!a || !b || !c) return !a ? a : !b ? b : c;
        for (int i = 0; i < 70; ++i) {
            if (small[i] != 127) return bad("int8: element {} is {}", i, int(small[i]));
            if (large[i] != std::numeric_limits<uint64_t>::max()) return bad("uint64: element {} is {}", i, large[i]);
            if (negative[i] != -1) return bad("int32: element {} is {}, should truncate to -1", i, negative[i]);
        }
        return good();
    });
}

INSTANTIATE_TEST_SUITE_P(, Numbers, ::testing::ValuesIn(kSetups), setup_name);

// Direct plans add in rank order: ((a0 + a1) + a2) + ..., for every element.
TEST(RankOrder, OfDirectPlans) {
    for (const char* algorithm : {"oneshot", "twoshot"}) {
        run_ranks({.size = 4, .transport = "p2p", .algorithm = algorithm}, [](const Member& me) {
            constexpr size_t kCount = 3001;
            auto input = [](int rank, size_t i) { return std::ldexp(1.0f + 0.001f * float(i), 5 * ((rank + int(i)) % 4)); };
            std::vector<float> data(kCount);
            for (size_t i = 0; i < kCount; ++i) data[i] = input(me.rank, i);
            Verdict done =
                worked(ringAllReduce(data.data(), data.data(), kCount, ringFloat32, ringSum, me.comm, nullptr), "allReduce");
            if (!done) return done;
            for (size_t i = 0; i < kCount; ++i) {
                float want = input(0, i);
                for (int rank = 1; rank < me.size; ++rank) want += input(rank, i);
                if (data[i] != want) return bad("element {} is {}, in rank order it is {}", i, data[i], want);
            }
            return good();
        });
    }
}

}  // namespace
}  // namespace ringccl::test
