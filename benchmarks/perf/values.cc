#include "perf/values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ringccl::perf {
namespace {

// The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
constexpr uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

uint64_t noise(int rank, int row) {
    return mix((static_cast<uint64_t>(rank) * kRows + row + 1) * 0x9e3779b97f4a7c15);
}

// A number in -most .. most.
double spread(uint64_t noise, int64_t most) {
    return static_cast<double>(static_cast<int64_t>(noise % (2 * most + 1)) - most);
}

// Largest integer up to which a float counts without gaps, but not more than is needed for variety.
int64_t exact_limit(const Type& type) {
    return int64_t{1} << std::min(type.mantissa_bits + 1, 24);
}

template <class Element>
void fill_elements(const Rows& rows, uint64_t first, size_t count, void* at) {
    std::array<Element, kRows> narrow;
    std::ranges::transform(rows, narrow.begin(), [](uint64_t bits) { return static_cast<Element>(bits); });
    auto* bytes = static_cast<std::byte*>(at);
    for (size_t i = 0; i < count; ++i) std::memcpy(bytes + i * sizeof(Element), &narrow[row_of(first + i)], sizeof(Element));
}

template <class Element>
size_t count_wrong_elements(const Rows& rows, uint64_t first, size_t count, const void* at, size_t* where, uint64_t* found) {
    auto* bytes = static_cast<const std::byte*>(at);
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) {
        Element element;
        std::memcpy(&element, bytes + i * sizeof(Element), sizeof(Element));
        if (element == static_cast<Element>(rows[row_of(first + i)])) continue;
        if (wrong++ == 0) {
            *where = i;
            *found = element;
        }
    }
    return wrong;
}

}  // namespace

int row_of(uint64_t index) {
    index *= 0x9e3779b97f4a7c15;
    index ^= index >> 32;
    return static_cast<int>((index * 0xd6e8feb86659fd93) >> 56);
}

__int128 Values::integer(int rank, int row) const {
    uint64_t bits = noise(rank, row) & mask();
    if (reduction_ == Reduction::prod) bits |= 1;  // products of odd numbers never fade to 0
    if (type_.arithmetic == Arithmetic::unsigned_integer) return bits;
    int shift = 64 - 8 * static_cast<int>(type_.size);
    return static_cast<int64_t>(bits << shift) >> shift;
}

double Values::real(int rank, int row) const {
    uint64_t bits = noise(rank, row);
    int64_t limit = exact_limit(type_);
    switch (reduction_) {
        case Reduction::prod: {
            // Powers of two; few enough factors other than 1 that no order of multiplication leaves the normal range.
            int factors = std::min(14, (1 << (type_.exponent_bits - 1)) - 2);
            int exponent = rank < factors ? static_cast<int>(bits % 3) - 1 : 0;
            return std::ldexp(bits >> 63 ? -1.0 : 1.0, exponent);
        }
        case Reduction::sum:
        case Reduction::avg:
        case Reduction::mulsum: {
            int64_t most = limit / world_ / (reduction_ == Reduction::mulsum ? 2 : 1);
            if (most > 0) return spread(bits, most);
            // More ranks than the type can count: only some of them, another choice in each row, give 1.
            return (rank + row) % world_ < limit / 2 ? 1.0 : 0.0;
        }
        default:
            return spread(bits, limit);
    }
}

int Values::multiplier(int rank) const {
    return type_.arithmetic == Arithmetic::floating ? 1 + rank % 2 : 2 + rank % 7;
}

uint64_t Values::scalar(int rank) const {
    if (type_.arithmetic != Arithmetic::floating) return multiplier(rank);
    return encode_float(multiplier(rank), type_.mantissa_bits, type_.exponent_bits);
}

Rows Values::input(int rank) const {
    Rows rows;
    for (int row = 0; row < kRows; ++row) {
        rows[row] = type_.arithmetic == Arithmetic::floating
                        ? encode_float(real(rank, row), type_.mantissa_bits, type_.exponent_bits)
                        : static_cast<uint64_t>(integer(rank, row)) & mask();
    }
    return rows;
}

uint64_t Values::integer_result(int row) const {
    __int128 result = integer(0, row);
    if (reduction_ == Reduction::mulsum) result *= multiplier(0);
    for (int rank = 1; rank < world_; ++rank) {
        __int128 next = integer(rank, row);
        switch (reduction_) {
            case Reduction::prod:
                result = static_cast<uint64_t>(result) * static_cast<uint64_t>(next);  // only the low bits matter
                break;
            case Reduction::max:
                result = std::max(result, next);
                break;
            case Reduction::min:
                result = std::min(result, next);
                break;
            case Reduction::mulsum:
                result += next * multiplier(rank);
                break;
            default:
                result += next;
        }
    }
    if (reduction_ == Reduction::avg) result /= world_;
    return static_cast<uint64_t>(result) & mask();
}

uint64_t Values::real_result(int row) const {
    double result = real(0, row);
    if (reduction_ == Reduction::mulsum) result *= multiplier(0);
    for (int rank = 1; rank < world_; ++rank) {
        double next = real(rank, row);
        switch (reduction_) {
            case Reduction::prod:
                result *= next;
                break;
            case Reduction::max:
                result = std::max(result, next);
                break;
            case Reduction::min:
                result = std::min(result, next);
                break;
            case Reduction::mulsum:
                result += next * multiplier(rank);
                break;
            default:
                result += next;
        }
    }
    // A quotient that is rounded to float32 or wider first rounds to the same float of 16 bits or fewer: 24 >= 2 * 11 + 2
    // (Figueroa, When is double rounding innocuous?, SIGNUM 30(3), 1995).
    if (reduction_ == Reduction::avg) result /= world_;
    return encode_float(result, type_.mantissa_bits, type_.exponent_bits);
}

Rows Values::result() const {
    Rows rows;
    for (int row = 0; row < kRows; ++row) {
        rows[row] = type_.arithmetic == Arithmetic::floating ? real_result(row) : integer_result(row);
    }
    return rows;
}

uint64_t encode_float(double value, int mantissa_bits, int exponent_bits) {
    uint64_t sign = std::signbit(value) ? uint64_t{1} << (mantissa_bits + exponent_bits) : 0;
    double magnitude = std::fabs(value);
    if (magnitude == 0) return sign;
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = std::max(std::ilogb(magnitude), 1 - bias);  // subnormals share the least exponent
    auto digits = static_cast<uint64_t>(std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent)));
    // `digits` still holds the hidden bit, or one more after rounding up: adding it to the exponent field carries both right.
    return sign | ((static_cast<uint64_t>(exponent + bias - 1) << mantissa_bits) + digits);
}

void fill(const Rows& rows, size_t size, uint64_t first, size_t count, void* at) {
    switch (size) {
        case 1:
            return fill_elements<uint8_t>(rows, first, count, at);
        case 2:
            return fill_elements<uint16_t>(rows, first, count, at);
        case 4:
            return fill_elements<uint32_t>(rows, first, count, at);
        default:
            return fill_elements<uint64_t>(rows, first, count, at);
    }
}

size_t count_wrong(const Rows& rows, size_t size, uint64_t first, size_t count, const void* at, size_t* where,
                   uint64_t* found) {
    switch (size) {
        case 1:
            return count_wrong_elements<uint8_t>(rows, first, count, at, where, found);
        case 2:
            return count_wrong_elements<uint16_t>(rows, first, count, at, where, found);
        case 4:
            return count_wrong_elements<uint32_t>(rows, first, count, at, where, found);
        default:
            return count_wrong_elements<uint64_t>(rows, first, count, at, where, found);
    }
}

}  // namespace ringccl::perf
