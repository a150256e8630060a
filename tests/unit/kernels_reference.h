// What the CPU kernels must return: a slow reference from the definitions, and the inputs that it is compared on.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/kernels.h"

namespace ringccl {

using Bytes = std::vector<uint8_t>;
__extension__ using Int128 = __int128;

inline constexpr ringDataType_t kTypes[] = {ringInt8,    ringUint8,    ringInt32,      ringUint32,
                                            ringInt64,   ringUint64,   ringFloat16,    ringFloat32,
                                            ringFloat64, ringBfloat16, ringFloat8e4m3, ringFloat8e5m2};
inline constexpr Op kOps[] = {Op::sum, Op::prod, Op::max, Op::min, Op::avg, Op::premul};
inline constexpr const char* kOpNames[] = {"none", "sum", "prod", "max", "min", "avg", "premul"};

// ---- types as numbers ----

struct TypeInfo {
    size_t bytes;
    bool is_float;
    bool is_signed;
    int exponent_bits, fraction_bits;
    const char* name;
    bool infinities = true;  // of a float; else all bits set are its one NaN, and the highest exponent holds numbers too

    uint64_t infinity() const { return ((uint64_t{1} << exponent_bits) - 1) << fraction_bits; }
};

inline TypeInfo describe(ringDataType_t type) {
    switch (type) {
        case ringInt8:
            return {1, false, true, 0, 0, "int8"};
        case ringUint8:
            return {1, false, false, 0, 0, "uint8"};
        case ringInt32:
            return {4, false, true, 0, 0, "int32"};
        case ringUint32:
            return {4, false, false, 0, 0, "uint32"};
        case ringInt64:
            return {8, false, true, 0, 0, "int64"};
        case ringUint64:
            return {8, false, false, 0, 0, "uint64"};
        case ringFloat16:
            return {2, true, true, 5, 10, "float16"};
        case ringBfloat16:
            return {2, true, true, 8, 7, "bfloat16"};
        case ringFloat8e4m3:
            return {1, true, true, 4, 3, "float8e4m3", false};
        case ringFloat8e5m2:
            return {1, true, true, 5, 2, "float8e5m2"};
        case ringFloat32:
            return {4, true, true, 8, 23, "float32"};
        case ringFloat64:
            return {8, true, true, 11, 52, "float64"};
    }
    return {};
}

inline uint64_t get(const uint8_t* at, size_t bytes) {
    uint64_t bits = 0;
    std::memcpy(&bits, at, bytes);
    return bits;
}

inline uint64_t quiet_nan(const TypeInfo& t) {
    return t.infinities ? t.infinity() | uint64_t{1} << (t.fraction_bits - 1) : (uint64_t{1} << (8 * t.bytes - 1)) - 1;
}

// IEEE 754 decoding and nearest-even encoding from the definition, for any width up to float64.
inline double decode(uint64_t bits, const TypeInfo& t) {
    if (t.bytes == 8) return std::bit_cast<double>(bits);
    const int bias = (1 << (t.exponent_bits - 1)) - 1;
    const auto fraction = static_cast<double>(bits & ((uint64_t{1} << t.fraction_bits) - 1));
    const int exponent = static_cast<int>(bits >> t.fraction_bits) & ((1 << t.exponent_bits) - 1);
    const double sign = bits >> (8 * t.bytes - 1) ? -1.0 : 1.0;
    if (!t.infinities && (bits & quiet_nan(t)) == quiet_nan(t)) return std::numeric_limits<double>::quiet_NaN();
    if (t.infinities && exponent == (1 << t.exponent_bits) - 1) {
        return fraction == 0 ? sign * HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
    }
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - t.fraction_bits);
    return sign * std::ldexp(std::ldexp(1.0, t.fraction_bits) + fraction, exponent - bias - t.fraction_bits);
}

inline uint64_t encode(double value, const TypeInfo& t) {
    if (std::isnan(value)) return quiet_nan(t);
    if (t.bytes == 8) return std::bit_cast<uint64_t>(value);
    const int bias = (1 << (t.exponent_bits - 1)) - 1;
    const uint64_t sign = std::signbit(value) ? uint64_t{1} << (8 * t.bytes - 1) : 0;
    if (std::isinf(value)) return t.infinities ? sign | t.infinity() : quiet_nan(t);
    if (value == 0) return sign;
    // In units of the last place, which denormals share with the smallest normal numbers.
    const int exponent = std::max(std::ilogb(value), 1 - bias);
    const double units = std::nearbyint(std::ldexp(std::fabs(value), t.fraction_bits - exponent));
    const auto whole = static_cast<uint64_t>(units) + (static_cast<uint64_t>(exponent + bias - 1) << t.fraction_bits);
    if (!t.infinities) return whole < quiet_nan(t) ? sign | whole : quiet_nan(t);
    return sign | std::min(whole, t.infinity());
}

// ---- the reference ----

template <class Float>
Float combine(Op op, Float a, Float b) {
    if (op == Op::prod) return a * b;
    if (op == Op::max || op == Op::min) {
        if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<Float>::quiet_NaN();
        if (a == b) return std::signbit(a) == (op == Op::max) ? b : a;
        return (a < b) == (op == Op::max) ? b : a;
    }
    return a + b;
}

template <class Float>
uint64_t reference_float(const TypeInfo& t, Op op, const std::vector<uint64_t>& in, const Scale& scale) {
    auto total = static_cast<Float>(decode(in[0], t));
    if (in.size() == 1 && op != Op::avg && op != Op::premul) return in[0];
    for (size_t j = 1; j < in.size(); ++j) total = combine(op, total, static_cast<Float>(decode(in[j], t)));
    if (op == Op::avg) total /= static_cast<Float>(scale.divisor);
    if (op == Op::premul) total *= static_cast<Float>(scale.scalar);
    return encode(static_cast<double>(total), t);
}

inline uint64_t reference_integer(const TypeInfo& t, Op op, const std::vector<uint64_t>& in, const Scale& scale) {
    auto number = [&](uint64_t bits) -> Int128 {
        const int spare = 64 - 8 * static_cast<int>(t.bytes);
        if (t.is_signed) return static_cast<int64_t>(bits << spare) >> spare;
        return bits;
    };
    const uint64_t mask = ~uint64_t{0} >> (64 - 8 * t.bytes);
    Int128 total = number(in[0]);
    for (size_t j = 1; j < in.size(); ++j) {
        const Int128 next = number(in[j]);
        switch (op) {
            case Op::prod:
                total = number(static_cast<uint64_t>(total) * static_cast<uint64_t>(next) & mask);
                break;
            case Op::max:
                total = std::max(total, next);
                break;
            case Op::min:
                total = std::min(total, next);
                break;
            default:
                total += next;
        }
    }
    if (op == Op::avg) total /= scale.divisor;
    if (op == Op::premul) return static_cast<uint64_t>(total) * scale.scalar_bits & mask;
    return static_cast<uint64_t>(total) & mask;
}

inline Bytes reference(ringDataType_t type, Op op, const std::vector<Bytes>& inputs, size_t count, const Scale& scale) {
    const TypeInfo t = describe(type);
    Bytes out(count * t.bytes);
    std::vector<uint64_t> in(inputs.size());
    for (size_t i = 0; i < count; ++i) {
        for (size_t j = 0; j < in.size(); ++j) in[j] = get(&inputs[j][i * t.bytes], t.bytes);
        const uint64_t bits = !t.is_float    ? reference_integer(t, op, in, scale)
                              : t.bytes == 8 ? reference_float<double>(t, op, in, scale)
                                             : reference_float<float>(t, op, in, scale);
        std::memcpy(&out[i * t.bytes], &bits, t.bytes);
    }
    return out;
}

// ---- inputs ----

// Zeros, ones, ends of the range, denormals, infinities, NaN with and without payload, quiet and signalling.
inline std::vector<uint64_t> special_values(const TypeInfo& t) {
    const uint64_t top = uint64_t{1} << (8 * t.bytes - 1);
    std::vector<uint64_t> values;
    if (t.is_float) {
        const uint64_t infinity = t.infinities ? t.infinity() : quiet_nan(t);
        const uint64_t one = encode(1.0, t);
        const uint64_t least_normal = uint64_t{1} << t.fraction_bits;
        values = {0, 1, least_normal - 1, least_normal, one, one + 1, infinity - 1, infinity, quiet_nan(t)};
        if (t.infinities) values.insert(values.end(), {infinity + 1, quiet_nan(t) + (t.fraction_bits > 2 ? 3 : 1)});
    } else {
        values = {0, 1, 2, top - 1};
    }
    for (size_t i = 0, n = values.size(); i < n; ++i) values.push_back(t.is_float ? values[i] | top : ~values[i]);
    return values;
}

// Half moderate numbers, the rest any bits and special values.
inline Bytes random_elements(const TypeInfo& t, size_t count, std::mt19937_64& random) {
    const auto special = special_values(t);
    Bytes bytes(count * t.bytes);
    for (size_t i = 0; i < count; ++i) {
        uint64_t bits = random();
        const uint64_t kind = random() % 8;
        if (kind < 4 && t.is_float) bits = encode(std::ldexp(static_cast<double>(static_cast<int64_t>(bits)), -60), t);
        if (kind == 7) bits = special[random() % special.size()];
        std::memcpy(&bytes[i * t.bytes], &bits, t.bytes);
    }
    return bytes;
}

inline Scale random_scale(const TypeInfo& t, int k, std::mt19937_64& random) {
    Scale scale;
    scale.divisor = random() % 2 ? k : static_cast<int>(1 + random() % 40);
    if (t.is_float) scale.scalar = decode(encode(std::ldexp(static_cast<double>(static_cast<int64_t>(random())), -62), t), t);
    scale.scalar_bits = random();
    return scale;
}

}  // namespace ringccl
