// The CPU kernels against a slow reference, bit by bit, on every instruction set that this processor has.
#include "kernels/cpu/kernels.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/unit/kernels_reference.h"
//
#include "kernels/cpu/targets.h"
//
#include "hwy/targets.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace ringccl {
namespace {

// A buffer with a chosen misalignment and a guard band on both sides.
class Guarded {
public:
    Guarded(size_t bytes, size_t shift) : bytes_(bytes), shift_(shift), memory_(bytes + 2 * kBand + 64, kMark) {}
    uint8_t* data() {
        auto base = reinterpret_cast<uintptr_t>(memory_.data()) + kBand;
        return memory_.data() + kBand + (64 - base % 64) % 64 + shift_;
    }
    bool intact() {
        auto marked = [](uint8_t byte) { return byte == kMark; };
        const uint8_t* begin = data();
        return std::all_of(static_cast<const uint8_t*>(memory_.data()), begin, marked) &&
               std::all_of(begin + bytes_, static_cast<const uint8_t*>(memory_.data()) + memory_.size(), marked);
    }

private:
    static constexpr size_t kBand = 192;
    static constexpr uint8_t kMark = 0xa5;
    size_t bytes_, shift_;
    Bytes memory_;
};

std::vector<int64_t> targets() {
    std::vector<int64_t> all = hwy::SupportedAndGeneratedTargets();
    if (std::find(all.begin(), all.end(), HWY_STATIC_TARGET) == all.end()) all.push_back(HWY_STATIC_TARGET);
    return all;
}

// Runs `body` once per instruction set, chosen as Highway would choose it on a processor that has no better one.
template <class Body>
void on_every_target(Body body) {
    for (int64_t target : targets()) {
        hwy::GetChosenTarget().Update(target);
        ASSERT_STREQ(kernel_target(), hwy::TargetName(target));
        SCOPED_TRACE(kernel_target());
        body();
        if (testing::Test::HasFatalFailure()) break;
    }
    hwy::GetChosenTarget().DeInit();
}

// `alias` >= 0: dst is that source.
void expect_result(ringDataType_t type, Op op, const std::vector<Bytes>& inputs, size_t count, const Scale& scale,
                   const Bytes& expected, const std::vector<size_t>& shifts, int alias = -1) {
    const TypeInfo t = describe(type);
    const size_t bytes = count * t.bytes;
    std::vector<Guarded> buffers;
    std::vector<const void*> sources;
    for (size_t j = 0; j < inputs.size(); ++j) {
        buffers.emplace_back(bytes, shifts[j]);
        std::copy(inputs[j].begin(), inputs[j].end(), buffers.back().data());
    }
    for (auto& buffer : buffers) sources.push_back(buffer.data());
    Guarded separate(bytes, shifts.back());
    Guarded& result = alias < 0 ? separate : buffers[static_cast<size_t>(alias)];
    reduce_kernel(type, op)(result.data(), sources.data(), static_cast<int>(inputs.size()), count, scale);

    for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(get(result.data() + i * t.bytes, t.bytes), get(&expected[i * t.bytes], t.bytes))
            << t.name << ' ' << kOpNames[static_cast<int>(op)] << " of " << inputs.size() << ", element " << i << " of "
            << count << ", dst shifted by " << shifts.back() << (alias < 0 ? "" : ", in place");
    }
    ASSERT_TRUE(result.intact()) << t.name << ' ' << kOpNames[static_cast<int>(op)] << ", count " << count;
    for (size_t j = 0; j < inputs.size(); ++j) {
        if (static_cast<int>(j) == alias) continue;
        ASSERT_TRUE(std::equal(inputs[j].begin(), inputs[j].end(), buffers[j].data())) << "source " << j << " was changed";
    }
}

class KernelsOfType : public testing::TestWithParam<ringDataType_t> {
protected:
    const ringDataType_t type_ = GetParam();
    const TypeInfo t_ = describe(type_);
    std::mt19937_64 random_{static_cast<uint64_t>(type_) + 1};

    std::vector<Bytes> inputs(int k, size_t count) {
        std::vector<Bytes> all;
        for (int j = 0; j < k; ++j) all.push_back(random_elements(t_, count, random_));
        return all;
    }
    std::vector<size_t> shifts(int k) {
        std::vector<size_t> all;
        for (int j = 0; j <= k; ++j) all.push_back(random_() % 16);
        return all;
    }
};

TEST_P(KernelsOfType, MatchTheReferenceForAllCounts) {
    std::vector<size_t> counts;
    for (size_t n = 0; n <= 65; ++n) counts.push_back(n);
    counts.insert(counts.end(), {127, 128, 129, 1023, 1024, 1025});
    for (Op op : kOps) {
        for (int k : {1, 2, 3, 5, 8, 13}) {
            if (op == Op::premul && k > 1) continue;
            for (size_t count : counts) {
                const auto in = inputs(k, count);
                const Scale scale = random_scale(t_, k, random_);
                const Bytes expected = reference(type_, op, in, count, scale);
                on_every_target([&] {
                    expect_result(type_, op, in, count, scale, expected, shifts(k));
                    expect_result(type_, op, in, count, scale, expected, shifts(k), static_cast<int>(random_() % in.size()));
                });
                if (HasFatalFailure()) return;
            }
        }
    }
}

TEST_P(KernelsOfType, MatchTheReferenceForALargeCount) {
    constexpr size_t kCount = 100003;
    for (Op op : kOps) {
        for (int k : {1, 2, 3}) {
            if (op == Op::premul && k > 1) continue;
            const auto in = inputs(k, kCount);
            const Scale scale = random_scale(t_, k, random_);
            const Bytes expected = reference(type_, op, in, kCount, scale);
            on_every_target([&] { expect_result(type_, op, in, kCount, scale, expected, shifts(k)); });
            if (HasFatalFailure()) return;
        }
    }
}

TEST_P(KernelsOfType, TakeAnyAlignment) {
    constexpr size_t kCount = 77;
    for (Op op : {Op::sum, Op::max, Op::avg}) {
        const auto in = inputs(2, kCount);
        const Scale scale{.divisor = 3};
        const Bytes expected = reference(type_, op, in, kCount, scale);
        on_every_target([&] {
            for (size_t shift = 0; shift < 16 * 16; ++shift) {
                expect_result(type_, op, in, kCount, scale, expected, {shift % 16, (shift * 7) % 16, shift / 16});
            }
        });
    }
}

// One pair of operands, at every place of a buffer: one result.
TEST_P(KernelsOfType, DoNotDependOnThePosition) {
    constexpr size_t kCount = 200;
    for (Op op : {Op::sum, Op::prod, Op::max, Op::min, Op::avg}) {
        const auto pairs = inputs(2, 20);
        for (size_t pair = 0; pair < 20; ++pair) {
            std::vector<Bytes> in(2);
            for (int j = 0; j < 2; ++j) {
                for (size_t i = 0; i < kCount; ++i) {
                    in[j].insert(in[j].end(), &pairs[j][pair * t_.bytes], &pairs[j][pair * t_.bytes] + t_.bytes);
                }
            }
            on_every_target([&] {
                Bytes out(kCount * t_.bytes);
                const void* sources[] = {in[0].data(), in[1].data()};
                reduce_kernel(type_, op)(out.data(), sources, 2, kCount, Scale{.divisor = 3});
                ASSERT_EQ(std::memcmp(out.data(), out.data() + t_.bytes, out.size() - t_.bytes), 0) << kOpNames[int(op)];
            });
            if (HasFatalFailure()) return;
        }
    }
}

// Every triple of special values in all six orders.
TEST_P(KernelsOfType, MaxAndMinDoNotDependOnTheOrder) {
    const auto special = special_values(t_);
    std::vector<Bytes> in(3);
    for (uint64_t a : special) {
        for (uint64_t b : special) {
            for (uint64_t c : special) {
                const uint64_t triple[] = {a, b, c};
                for (int j = 0; j < 3; ++j) {
                    auto* bytes = reinterpret_cast<const uint8_t*>(&triple[j]);
                    in[j].insert(in[j].end(), bytes, bytes + t_.bytes);
                }
            }
        }
    }
    const size_t count = in[0].size() / t_.bytes;
    for (Op op : {Op::max, Op::min}) {
        const Bytes expected = reference(type_, op, in, count, {});
        on_every_target([&] {
            int order[] = {0, 1, 2};
            do {
                Bytes out(expected.size());
                const void* sources[] = {in[order[0]].data(), in[order[1]].data(), in[order[2]].data()};
                reduce_kernel(type_, op)(out.data(), sources, 3, count, {});
                ASSERT_EQ(out, expected) << kOpNames[int(op)] << " in order " << order[0] << order[1] << order[2];
            } while (std::next_permutation(order, order + 3));
        });
    }
}

// Buffers that begin and end at pages that cannot be touched.
TEST_P(KernelsOfType, StayInsideTheirBuffers) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    auto* memory = static_cast<uint8_t*>(mmap(nullptr, 7 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory, MAP_FAILED);
    uint8_t* pages[3];
    for (size_t j = 0; j < 3; ++j) {
        pages[j] = memory + (2 * j + 1) * page;
        ASSERT_EQ(mprotect(pages[j], page, PROT_READ | PROT_WRITE), 0);
    }
    on_every_target([&] {
        for (size_t count = 0; count * t_.bytes <= 520; ++count) {
            const size_t bytes = count * t_.bytes;
            for (Op op : {Op::sum, Op::avg}) {
                for (size_t start : {size_t{0}, page - bytes}) {
                    const void* sources[] = {pages[0] + start, pages[1] + start};
                    reduce_kernel(type_, op)(pages[2] + start, sources, 2, count, {});
                }
            }
        }
    });
    munmap(memory, 7 * page);
}

INSTANTIATE_TEST_SUITE_P(Types, KernelsOfType, testing::ValuesIn(kTypes),
                         [](const auto& type) { return describe(type.param).name; });

// Every 8-bit value with every other. With that all numbers, signs, denormals, NaN and overflows are seen, and every tie.
TEST(Kernels, CombineEveryPairOf8BitValues) {
    constexpr size_t kCount = 65536;
    std::vector<Bytes> in(2, Bytes(kCount));
    for (size_t i = 0; i < kCount; ++i) {
        in[0][i] = static_cast<uint8_t>(i);
        in[1][i] = static_cast<uint8_t>(i >> 8);
    }
    for (ringDataType_t type : {ringFloat8e4m3, ringFloat8e5m2}) {
        for (Op op : {Op::sum, Op::prod, Op::max, Op::min, Op::avg}) {
            for (int divisor : {1, 2, 3}) {
                if (divisor > 1 && op != Op::avg) continue;
                const Scale scale{.divisor = divisor};
                const Bytes expected = reference(type, op, in, kCount, scale);
                on_every_target([&] { expect_result(type, op, in, kCount, scale, expected, {0, 0, 0}); });
            }
        }
    }
}

// Every 8-bit value times every 8-bit scalar.
TEST(Kernels, PremultiplyEvery8BitValue) {
    std::vector<Bytes> in(1, Bytes(256));
    for (size_t i = 0; i < 256; ++i) in[0][i] = static_cast<uint8_t>(i);
    for (ringDataType_t type : {ringFloat8e4m3, ringFloat8e5m2}) {
        for (uint64_t scalar = 0; scalar < 256; ++scalar) {
            const Scale scale{.scalar = decode(scalar, describe(type))};
            const Bytes expected = reference(type, Op::premul, in, 256, scale);
            on_every_target([&] { expect_result(type, Op::premul, in, 256, scale, expected, {0, 0}); });
        }
    }
}

// Every 16-bit value survives being widened and rounded back; adding -0 changes no number.
TEST(Kernels, KeepEvery16BitValue) {
    for (ringDataType_t type : {ringFloat16, ringBfloat16}) {
        std::vector<uint16_t> all(65536), zeros(65536, 0x8000), out(65536);
        for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
        on_every_target([&] {
            const void* sources[] = {all.data(), zeros.data()};
            reduce_kernel(type, Op::sum)(out.data(), sources, 2, all.size(), {});
            for (size_t i = 0; i < all.size(); ++i) {
                const bool is_nan = std::isnan(decode(i, describe(type)));
                ASSERT_EQ(out[i], is_nan ? quiet_nan(describe(type)) : i) << describe(type).name;
            }
        });
    }
}

// Products with 1 + 2^-7 and sums with small numbers land between representable values of every size, halfway cases included.
TEST(Kernels, RoundEvery16BitValueToNearestEven) {
    for (ringDataType_t type : {ringFloat16, ringBfloat16}) {
        const TypeInfo t = describe(type);
        for (double other : {1.0 + 1.0 / 128, 1.5, 0.5, 1.0 / 1024, 3.0, 0x1p-14}) {
            std::vector<Bytes> in(2, Bytes(65536 * 2));
            const uint64_t second = encode(other, t);
            for (size_t i = 0; i < 65536; ++i) {
                std::memcpy(&in[0][2 * i], &i, 2);
                std::memcpy(&in[1][2 * i], &second, 2);
            }
            for (Op op : {Op::sum, Op::prod}) {
                const Bytes expected = reference(type, op, in, 65536, {});
                on_every_target([&] { expect_result(type, op, in, 65536, {}, expected, {0, 0, 0}); });
            }
        }
    }
}

template <class T>
T average_of(ringDataType_t type, const std::vector<T>& values) {
    std::vector<const void*> sources;
    for (const T& value : values) sources.push_back(&value);
    T result{};
    const int k = static_cast<int>(values.size());
    reduce_kernel(type, Op::avg)(&result, sources.data(), k, 1, Scale{.divisor = k});
    return result;
}

TEST(Kernels, IntegerAveragesAreWideAndTruncateTowardZero) {
    EXPECT_EQ(average_of<int8_t>(ringInt8, {-1, -2}), -1);
    EXPECT_EQ(average_of<int8_t>(ringInt8, {127, 127, 127}), 127);
    EXPECT_EQ(average_of<int8_t>(ringInt8, {-128, -128, -127}), -127);
    EXPECT_EQ(average_of<int32_t>(ringInt32, {-7, 0, 0}), -2);
    EXPECT_EQ(average_of<uint32_t>(ringUint32, {0xffffffffu, 0xffffffffu, 0xfffffffeu}), 0xfffffffeu);
    constexpr int64_t kMax = std::numeric_limits<int64_t>::max(), kMin = std::numeric_limits<int64_t>::min();
    EXPECT_EQ(average_of<int64_t>(ringInt64, {kMax, kMax, kMax}), kMax);
    EXPECT_EQ(average_of<int64_t>(ringInt64, {kMin, kMin, kMin + 1}), kMin + 1);
    EXPECT_EQ(average_of<int64_t>(ringInt64, {kMin, kMax}), 0);
    constexpr uint64_t kTop = std::numeric_limits<uint64_t>::max();
    EXPECT_EQ(average_of<uint64_t>(ringUint64, {kTop, kTop, kTop - 1}), kTop - 1);
}

// The divisions by way of double: quotients next to an integer, where a rounded quotient could jump over it.
TEST(Kernels, IntegerAveragesAreExactNextToWholeNumbers) {
    std::mt19937_64 random(7);
    for (int k : {1000, 4097}) {
        std::vector<std::vector<uint32_t>> values(static_cast<size_t>(k), std::vector<uint32_t>(64));
        std::vector<uint64_t> sums(64, 0);
        for (size_t i = 0; i < 64; ++i) {
            for (auto& source : values) sums[i] += source[i] = 0xffffff00u + static_cast<uint32_t>(random() % 256);
            // Bring the sum to one below a multiple of k.
            const uint64_t excess = (sums[i] + 1) % static_cast<uint64_t>(k);
            values[0][i] -= static_cast<uint32_t>(excess);
            sums[i] -= excess;
        }
        std::vector<const void*> sources;
        for (const auto& source : values) sources.push_back(source.data());
        std::vector<uint32_t> out(64);
        reduce_kernel(ringUint32, Op::avg)(out.data(), sources.data(), k, 64, Scale{.divisor = k});
        for (size_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], sums[i] / static_cast<uint64_t>(k));
    }
}

// Sums of many small numbers, and ones whose intermediate total exceeds the type: rounding happens once, at the end.
TEST(Kernels, NarrowFloatsAreSummedInFloat32) {
    auto sum_of = [](ringDataType_t type, const std::vector<double>& numbers) {
        std::vector<uint64_t> values;
        for (double number : numbers) values.push_back(encode(number, describe(type)));
        std::vector<const void*> sources;
        for (const auto& value : values) sources.push_back(&value);
        uint64_t result = 0;
        reduce_kernel(type, Op::sum)(&result, sources.data(), static_cast<int>(values.size()), 1, {});
        return decode(result, describe(type));
    };
    on_every_target([&] {
        EXPECT_EQ(sum_of(ringFloat16, {2048, 0.5, 0.5, 0.5, 0.5}), 2050);
        EXPECT_EQ(sum_of(ringFloat16, {65504, 65504, -65504}), 65504);
        EXPECT_EQ(sum_of(ringFloat16, {65504, 15}), 65504);
        EXPECT_EQ(sum_of(ringFloat16, {65504, 16}), HUGE_VAL);
        EXPECT_EQ(sum_of(ringFloat16, {0x1p-24, 0x1p-24}), 0x1p-23);
        EXPECT_EQ(sum_of(ringBfloat16, {256, 0.5, 0.5, 0.5, 0.5}), 258);
        EXPECT_EQ(sum_of(ringBfloat16, {0x1p-133, 0x1p-133}), 0x1p-132);
        EXPECT_EQ(sum_of(ringFloat8e4m3, {16, 0.5, 0.5, 0.5, 0.5}), 18);
        EXPECT_EQ(sum_of(ringFloat8e4m3, {448, 448, -448}), 448);
        EXPECT_EQ(sum_of(ringFloat8e4m3, {448, 16}), 448) << "a tie, and 448 is even";
        EXPECT_TRUE(std::isnan(sum_of(ringFloat8e4m3, {-448, -16, -0x1p-9})));
        EXPECT_EQ(sum_of(ringFloat8e4m3, {0x1p-9, 0x1p-9}), 0x1p-8);
        EXPECT_EQ(sum_of(ringFloat8e5m2, {57344, 57344, -57344}), 57344);
        EXPECT_EQ(sum_of(ringFloat8e5m2, {57344, 3584}), 57344);
        EXPECT_EQ(sum_of(ringFloat8e5m2, {57344, 4096}), HUGE_VAL) << "a tie, and what lies beyond is even";
        EXPECT_EQ(sum_of(ringFloat8e5m2, {0x1p-16, 0x1p-16}), 0x1p-15);
    });
}

// The caller's thread rounds upward and drops denormals; the results do not change and its settings come back.
TEST(Kernels, IgnoreAndKeepTheFloatingPointEnvironment) {
    std::mt19937_64 random(11);
    for (ringDataType_t type : {ringFloat8e4m3, ringFloat8e5m2, ringFloat16, ringBfloat16, ringFloat32, ringFloat64}) {
        const TypeInfo t = describe(type);
        std::vector<Bytes> in = {random_elements(t, 300, random), random_elements(t, 300, random)};
        for (int i = 0; i < 100; ++i) std::memset(&in[i % 2][(i + 1) * t.bytes - 1], 0, 1);  // tiny
        const Scale scale{.divisor = 3};
        const Bytes expected = reference(type, Op::avg, in, 300, scale);
        Bytes out(expected.size());
        on_every_target([&] {
            std::fesetround(FE_UPWARD);
#if defined(__SSE2__)
            const unsigned before = _mm_getcsr() | 0x8040;  // flush to zero, denormals are zero
            _mm_setcsr(before);
#endif
            const void* sources[] = {in[0].data(), in[1].data()};
            reduce_kernel(type, Op::avg)(out.data(), sources, 2, 300, scale);
            const int rounding = std::fegetround();
#if defined(__SSE2__)
            const unsigned after = _mm_getcsr();
            _mm_setcsr(0x1f80);
            EXPECT_EQ(after & 0xffc0, before & 0xffc0);
#endif
            std::fesetround(FE_TONEAREST);
            EXPECT_EQ(rounding, FE_UPWARD);
            EXPECT_EQ(out, expected) << t.name;
        });
    }
}

TEST(Kernels, ExistForEveryTypeAndOp) {
    for (ringDataType_t type : kTypes) {
        for (Op op : kOps) EXPECT_NE(reduce_kernel(type, op), nullptr) << describe(type).name << ' ' << kOpNames[int(op)];
    }
}

TEST(CopyBytes, CopiesAnySizeAtAnyAlignment) {
    std::mt19937_64 random(3);
    on_every_target([&] {
        for (bool streaming : {false, true}) {
            for (size_t bytes : {0, 1, 15, 16, 63, 64, 65, 127, 128, 129, 200, 1000, 4096, 70001}) {
                for (int sample = 0; sample < 20; ++sample) {
                    Guarded src(bytes, random() % 64), dst(bytes, random() % 64);
                    for (size_t i = 0; i < bytes; ++i) src.data()[i] = static_cast<uint8_t>(random());
                    copy_bytes(dst.data(), src.data(), bytes, streaming);
                    ASSERT_EQ(std::memcmp(dst.data(), src.data(), bytes), 0) << bytes << " bytes";
                    ASSERT_TRUE(dst.intact());
                }
            }
        }
    });
}

}  // namespace
}  // namespace ringccl
