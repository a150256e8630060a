// What the perf tools send and expect: exact in every type, and such that mistakes show.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "perf/values.h"

namespace ringccl::perf {
namespace {

double decode(uint64_t bits, const Type& type) {
    int m = type.mantissa_bits, e = type.exponent_bits, bias = (1 << (e - 1)) - 1;
    auto exponent = static_cast<int>((bits >> m) & ((uint64_t{1} << e) - 1));
    auto mantissa = static_cast<double>(bits & ((uint64_t{1} << m) - 1));
    double magnitude =
        exponent ? std::ldexp(mantissa + std::ldexp(1.0, m), exponent - bias - m) : std::ldexp(mantissa, 1 - bias - m);
    return (bits >> (m + e)) & 1 ? -magnitude : magnitude;
}

const Type& type(const char* name) {
    return *find_type(name);
}

TEST(PerfValues, EncodesFloatsAsTheProcessorDoes) {
    for (double value : {0.0, -0.0, 1.0, -2.5, 1.0 / 3, 16777217.0, 1e-40, 3.4028234e38, 1.17549435e-38}) {
        auto narrow = static_cast<float>(value);
        uint32_t expected;
        std::memcpy(&expected, &narrow, sizeof expected);
        EXPECT_EQ(encode_float(value, 23, 8), expected) << value;
        uint64_t wide;
        std::memcpy(&wide, &value, sizeof wide);
        EXPECT_EQ(encode_float(value, 52, 11), wide) << value;
    }
}

TEST(PerfValues, EncodesHalvesByIeee754) {
    EXPECT_EQ(encode_float(1.0, 10, 5), 0x3c00u);
    EXPECT_EQ(encode_float(-2.0, 10, 5), 0xc000u);
    EXPECT_EQ(encode_float(65504.0, 10, 5), 0x7bffu);
    EXPECT_EQ(encode_float(std::ldexp(1, -24), 10, 5), 0x0001u);
    EXPECT_EQ(encode_float(1.0 / 3, 10, 5), 0x3555u);
    EXPECT_EQ(encode_float(2049.0, 10, 5), 0x6800u) << "a tie goes to the even one";
    EXPECT_EQ(encode_float(2047.9, 10, 5), 0x6800u) << "rounding up into the next binade";
    EXPECT_EQ(encode_float(1.0, 7, 8), 0x3f80u);
    EXPECT_EQ(encode_float(257.0, 7, 8), 0x4380u);
}

// Partial results, in whatever order ranks are combined, must fit the type: that is what makes the check exact.
TEST(PerfValues, PartialResultsOfFloatsAreExact) {
    for (const char* name : {"half", "bfloat16", "float", "double", "f8e4m3", "f8e5m2"}) {
        const Type& t = type(name);
        for (int world : {1, 2, 3, 5, 8, 64, 300, 1024}) {
            std::vector<double> least(kRows), most(kRows);  // sums of all negative, of all positive inputs
            Values values(t, Reduction::sum, world);
            for (int rank = 0; rank < world; ++rank) {
                Rows rows = values.input(rank);
                for (int row = 0; row < kRows; ++row) {
                    double value = decode(rows[row], t);
                    EXPECT_EQ(value, std::nearbyint(value));
                    (value < 0 ? least : most)[row] += value;
                }
            }
            Rows result = values.result();
            double limit = std::ldexp(1, t.mantissa_bits + 1);
            for (int row = 0; row < kRows; ++row) {
                EXPECT_LE(most[row], limit) << name << " world " << world;
                EXPECT_GE(least[row], -limit) << name << " world " << world;
                EXPECT_EQ(decode(result[row], t), most[row] + least[row]) << name << " world " << world;
            }
        }
    }
}

TEST(PerfValues, ProductsOfNarrowFloatsStayNormal) {
    struct Range {
        const char* name;
        double least, most;
    };
    for (auto [name, smallest, largest] :
         {Range{"half", 0x1p-14, 65504}, {"f8e4m3", 0x1p-6, 448}, {"f8e5m2", 0x1p-14, 57344}}) {
        const Type& t = type(name);
        for (int world : {2, 16, 300}) {
            Values values(t, Reduction::prod, world);
            std::vector<double> product(kRows, 1), small(kRows, 1), large(kRows, 1);
            for (int rank = 0; rank < world; ++rank) {
                Rows rows = values.input(rank);
                for (int row = 0; row < kRows; ++row) {
                    double value = decode(rows[row], t);
                    product[row] *= value;
                    (std::fabs(value) < 1 ? small : large)[row] *= std::fabs(value);
                }
            }
            Rows result = values.result();
            for (int row = 0; row < kRows; ++row) {
                EXPECT_EQ(decode(result[row], t), product[row]);
                EXPECT_GE(small[row], smallest);
                EXPECT_LE(large[row], largest);
            }
        }
    }
}

// Against the arithmetic of the language, which wraps unsigned and divides toward zero.
TEST(PerfValues, IntegersWrapAndAveragesTruncate) {
    const int world = 3;
    auto elements = [&](const char* name, Reduction reduction, int rank) {
        return Values(type(name), reduction, world).input(rank);
    };
    for (int row = 0; row < kRows; ++row) {
        uint8_t sum = 0, product = 1, scaled = 0;
        int32_t total = 0;
        __int128 wide = 0;
        Values mulsum(type("uint8"), Reduction::mulsum, world);
        for (int rank = 0; rank < world; ++rank) {
            sum += static_cast<uint8_t>(elements("uint8", Reduction::sum, rank)[row]);
            product *= static_cast<uint8_t>(elements("uint8", Reduction::prod, rank)[row]);
            scaled += static_cast<uint8_t>(mulsum.input(rank)[row] * mulsum.scalar(rank));
            total += static_cast<int8_t>(elements("int8", Reduction::avg, rank)[row]);
            wide += static_cast<int64_t>(elements("int64", Reduction::avg, rank)[row]);
        }
        EXPECT_EQ(Values(type("uint8"), Reduction::sum, world).result()[row], sum);
        EXPECT_EQ(Values(type("uint8"), Reduction::prod, world).result()[row], product);
        EXPECT_EQ(mulsum.result()[row], scaled);
        EXPECT_EQ(static_cast<int8_t>(Values(type("int8"), Reduction::avg, world).result()[row]), total / world);
        EXPECT_EQ(static_cast<int64_t>(Values(type("int64"), Reduction::avg, world).result()[row]),
                  static_cast<int64_t>(wide / world));
    }
}

TEST(PerfValues, SignedAndUnsignedExtremesDiffer) {
    Rows signed_least = Values(type("int32"), Reduction::min, 4).result(),
         unsigned_least = Values(type("uint32"), Reduction::min, 4).result();
    EXPECT_NE(signed_least, unsigned_least);
    for (int row = 0; row < kRows; ++row) {
        uint32_t least = std::numeric_limits<uint32_t>::max();
        for (int rank = 0; rank < 4; ++rank) {
            least = std::min(least, static_cast<uint32_t>(Values(type("uint32"), Reduction::min, 4).input(rank)[row]));
        }
        EXPECT_EQ(unsigned_least[row], least);
    }
}

TEST(PerfValues, RanksAndIndicesDiffer) {
    Values values(type("float"), Reduction::sum, 4);
    EXPECT_NE(values.input(0), values.input(1));
    std::set<int> rows;
    for (uint64_t index = 0; index < 4096; ++index) rows.insert(row_of(index));
    EXPECT_EQ(rows.size(), static_cast<size_t>(kRows)) << "all rows are used early";
    // A buffer that is shifted, by whatever distance a chunk may have, is nearly all wrong.
    for (uint64_t shift : {1, 2, 64, 144, 233, 987, 1024, 2584, 65536, 1 << 20}) {
        int same = 0;
        for (uint64_t index = 0; index < 4096; ++index) same += row_of(index) == row_of(index + shift);
        EXPECT_LT(same, 100) << "shift " << shift;
    }
}

TEST(PerfValues, CountsWrongElements) {
    for (const Type& each : types()) {
        Rows rows = Values(each, Reduction::sum, 2).input(1);
        std::vector<std::byte> memory(1000 * each.size + 1);
        std::byte* odd = memory.data() + 1;  // any alignment
        fill(rows, each.size, 77, 1000, odd);
        size_t where = 0;
        uint64_t found = 0;
        EXPECT_EQ(count_wrong(rows, each.size, 77, 1000, odd, &where, &found), 0u) << each.name;
        odd[500 * each.size] ^= std::byte{1};
        odd[999 * each.size + each.size - 1] ^= std::byte{0x80};
        EXPECT_EQ(count_wrong(rows, each.size, 77, 1000, odd, &where, &found), 2u) << each.name;
        EXPECT_EQ(where, 500u);
        EXPECT_NE(found, rows[row_of(577)]);
        EXPECT_GT(count_wrong(rows, each.size, 78, 1000, odd, &where, &found), 800u) << "shifted by one element";
    }
}

}  // namespace
}  // namespace ringccl::perf
