// The CUDA kernels' own source, compiled by the host's compiler (device_twin.h), against the slow reference and the CPU
// kernels, bit by bit. What only a GPU can show, its own instructions, is not seen here.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "tests/cuda/device_twin.h"
//
#include "kernels/cuda/table.cuh"
#include "tests/support/environment.h"
#include "tests/support/guarded.h"
#include "tests/unit/kernels_reference.h"

namespace ringccl::cuda {
namespace {

struct Grid {
    unsigned blocks, threads;
};
constexpr Grid kGrids[] = {{1, 1}, {3, 32}, {7, 256}};

// A source: an allocation that ends where it ends, so that sanitizers see a byte read too many.
class Source {
public:
    Source(const Bytes& bytes, size_t shift) : memory_(new uint8_t[shift + bytes.size()]), begin_(memory_.get() + shift) {
        std::copy(bytes.begin(), bytes.end(), begin_);
    }
    uint8_t* data() const { return begin_; }

private:
    std::unique_ptr<uint8_t[]> memory_;
    uint8_t* begin_;
};

struct Problem {
    ringDataType_t type;
    Op op;
    std::vector<Bytes> inputs;
    Scale scale = {};

    size_t bytes() const { return inputs[0].size(); }
    size_t count() const { return bytes() / describe(type).bytes; }
};

// What must come out: the reference says it, and the CPU kernels agree.
Bytes result_of(const Problem& problem) {
    Bytes expected = reference(problem.type, problem.op, problem.inputs, problem.count(), problem.scale);
    Bytes cpu(expected.size());
    std::vector<const void*> sources;
    for (const Bytes& input : problem.inputs) sources.push_back(input.data());
    ringccl::reduce_kernel(problem.type, problem.op)(cpu.data(), sources.data(), static_cast<int>(sources.size()),
                                                     problem.count(), problem.scale);
    EXPECT_EQ(cpu, expected);
    return expected;
}

// shifts: of each source, then of dst. alias >= 0: dst is that source.
void expect_result(const Problem& problem, const Bytes& expected, const std::vector<size_t>& shifts, Grid grid,
                   int alias = -1) {
    const TypeInfo t = describe(problem.type);
    test::Guarded dst(problem.bytes(), shifts.back());
    auto* result = reinterpret_cast<uint8_t*>(dst.data());
    std::vector<Source> owned;
    std::vector<const void*> sources;
    for (size_t j = 0; j < problem.inputs.size(); ++j) {
        owned.emplace_back(problem.inputs[j], shifts[j]);
        sources.push_back(owned[j].data());
    }
    if (alias >= 0) {
        const Bytes& input = problem.inputs[static_cast<size_t>(alias)];
        std::copy(input.begin(), input.end(), result);
        sources[static_cast<size_t>(alias)] = result;
    }
    run(reduce_function(problem.type, problem.op), grid.blocks, grid.threads,
        reduce_arguments(result, sources.data(), static_cast<int>(sources.size()), problem.count(), t.bytes, problem.scale));

    for (size_t i = 0; i < problem.count(); ++i) {
        ASSERT_EQ(get(result + i * t.bytes, t.bytes), get(&expected[i * t.bytes], t.bytes))
            << t.name << ' ' << kOpNames[static_cast<int>(problem.op)] << " of " << sources.size() << ", element " << i
            << " of " << problem.count() << ", dst shifted by " << shifts.back() << ", source 0 by " << shifts[0] << ", alias "
            << alias << ", grid " << grid.blocks << " x " << grid.threads;
    }
    ASSERT_TRUE(dst.intact()) << t.name << ", count " << problem.count() << ", dst shifted by " << shifts.back();
    for (size_t j = 0; j < owned.size(); ++j) {
        ASSERT_TRUE(std::equal(problem.inputs[j].begin(), problem.inputs[j].end(), owned[j].data())) << "source " << j;
    }
}

// One operand is not a matter for kernels, unless something is to be computed of it.
bool computes(Op op, int k) {
    return k == 1 ? op == Op::avg || op == Op::premul : op != Op::premul;
}

class CudaKernelsOfType : public testing::TestWithParam<ringDataType_t> {
protected:
    const ringDataType_t type_ = GetParam();
    const TypeInfo t_ = describe(type_);
    std::mt19937_64 random_{static_cast<uint64_t>(type_) + 1};

    Problem problem(Op op, int k, size_t count) {
        Problem made{type_, op, {}, random_scale(t_, k, random_)};
        for (int j = 0; j < k; ++j) made.inputs.push_back(random_elements(t_, count, random_));
        return made;
    }
    std::vector<size_t> shifts(size_t k) {
        std::vector<size_t> all;
        for (size_t j = 0; j <= k; ++j) all.push_back(random_() % 16);
        return all;
    }
};

TEST_P(CudaKernelsOfType, MatchTheReference) {
    std::vector<size_t> counts = {0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 47, 48, 49, 64, 65, 100, 257};
    if (!test::quick()) counts.insert(counts.end(), {1000, 10007});
    for (Op op : kOps) {
        for (int k : {1, 2, 3, 5, 8, 13}) {
            if (!computes(op, k)) continue;
            for (size_t count : counts) {
                const Problem made = problem(op, k, count);
                const Bytes expected = result_of(made);
                for (Grid grid : kGrids) {
                    const auto places = made.inputs.size();
                    expect_result(made, expected, shifts(places), grid);
                    expect_result(made, expected, shifts(places), grid, static_cast<int>(random_() % places));
                    expect_result(made, expected, std::vector<size_t>(places + 1, 0), grid);
                }
                if (HasFailure()) return;
            }
        }
    }
}

// Every misalignment of dst with every one of a source, while another source lies like dst. Counts: no vector, one, several.
TEST_P(CudaKernelsOfType, TakeAnyAlignment) {
    for (Op op : {Op::sum, Op::max}) {
        for (size_t bytes : {48, 80, 400}) {
            const Problem made = problem(op, 2, bytes / t_.bytes + 1);
            const Bytes expected = result_of(made);
            for (size_t shift = 0; shift < 16 * 16; ++shift) {
                const Grid grid = kGrids[shift % 2];
                expect_result(made, expected, {shift / 16, shift % 16, shift % 16}, grid);
                expect_result(made, expected, {shift / 16, shift % 16, shift % 16}, grid, 1);
            }
            if (HasFailure()) return;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaKernelsOfType, testing::ValuesIn(kTypes),
                         [](const auto& type) { return describe(type.param).name; });

// Every 8-bit value with every other: all numbers, signs, denormals, NaN, overflows and ties.
TEST(CudaKernels, CombineEveryPairOf8BitValues) {
    std::vector<Bytes> in(2, Bytes(65536));
    for (size_t i = 0; i < 65536; ++i) {
        in[0][i] = static_cast<uint8_t>(i);
        in[1][i] = static_cast<uint8_t>(i >> 8);
    }
    for (ringDataType_t type : {ringFloat8e4m3, ringFloat8e5m2, ringInt8, ringUint8}) {
        for (Op op : {Op::sum, Op::prod, Op::max, Op::min, Op::avg}) {
            const Problem made{type, op, in, Scale{.divisor = 3}};
            expect_result(made, result_of(made), {0, 0, 0}, {3, 32});
        }
    }
}

// Every 16-bit value with numbers that bring results between representable ones of every size, ties included.
TEST(CudaKernels, RoundEvery16BitValueToNearestEven) {
    for (ringDataType_t type : {ringFloat16, ringBfloat16}) {
        for (double other : {-0.0, 1.0 + 1.0 / 128, 1.5, 0.5, 1.0 / 1024, 3.0, 0x1p-14}) {
            std::vector<Bytes> in(2, Bytes(65536 * 2));
            const uint64_t second = encode(other, describe(type));
            for (size_t i = 0; i < 65536; ++i) {
                std::memcpy(&in[0][2 * i], &i, 2);
                std::memcpy(&in[1][2 * i], &second, 2);
            }
            for (Op op : {Op::sum, Op::prod}) {
                const Problem made{type, op, in};
                expect_result(made, result_of(made), {0, 0, 0}, {3, 32});
            }
        }
    }
}

// Quotients next to whole numbers, and sums that need more than 64 bits, for divisors small and large.
TEST(CudaKernels, AverageIntegersExactly) {
    std::mt19937_64 random(5);
    for (ringDataType_t type : {ringInt8, ringUint8, ringInt32, ringUint32, ringInt64, ringUint64}) {
        const TypeInfo t = describe(type);
        for (int k : {1, 2, 3, kMaxOperands}) {
            for (int divisor : {1, 2, 3, 7, 64, 127, 128, 1000003, 0x7fffffff}) {
                Problem made{type, Op::avg, std::vector<Bytes>(static_cast<size_t>(k)), Scale{.divisor = divisor}};
                for (int i = 0; i < 64; ++i) {
                    // The ends of the range, with a few steps off them, or any value.
                    for (Bytes& input : made.inputs) {
                        uint64_t value =
                            i < 48 ? special_values(t)[static_cast<size_t>(i) % special_values(t).size()] : random();
                        if (i >= 16 && i < 48) value -= random() % 4;
                        const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
                        input.insert(input.end(), bytes, bytes + t.bytes);
                    }
                }
                expect_result(made, result_of(made), std::vector<size_t>(made.inputs.size() + 1, 0), {1, 1});
                if (testing::Test::HasFailure()) return;
            }
        }
    }
}

TEST(CudaKernels, ExistForEveryTypeAndOp) {
    for (ringDataType_t type : kTypes) {
        for (Op op : kOps) EXPECT_NE(reduce_function(type, op), nullptr) << describe(type).name << ' ' << kOpNames[int(op)];
        EXPECT_EQ(reduce_function(type, Op::none), nullptr);
    }
    EXPECT_EQ(reduce_function(static_cast<ringDataType_t>(12), Op::sum), nullptr);
}

}  // namespace
}  // namespace ringccl::cuda
