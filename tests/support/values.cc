#include "support/values.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "support/narrow_float.h"

namespace ringccl::test {
namespace {

// Steele, Lea and Flood's SplitMix64 (OOPSLA 2014): neighbouring indices and ranks give unrelated bits.
uint64_t mix(int rank, size_t index) {
    uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u + uint64_t(rank + 1) * 0xd1342543de82ef95u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// Integers wrap, so every bit may be used and every order gives the same result.
template <class T>
struct Integer {
    using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;

    static T input(Op op, int rank, size_t index) {
        uint64_t bits = mix(rank, index);
        return T(op == Op::prod ? bits | 1 : bits);  // a product with even factors soon is 0 and proves nothing
    }
    static T scalar(int rank) { return T(rank % 2 ? 3 + rank : -1 - rank); }

    static T result(Op op, int world, size_t index) {
        T first = input(op, 0, index);
        Wide sum = 0;
        uint64_t wrapped = op == Op::prod ? 1 : 0;
        T least = first, most = first;
        for (int rank = 0; rank < world; ++rank) {
            T value = input(op, rank, index);
            sum += value;
            if (op == Op::prod) wrapped *= uint64_t(value);
            if (op == Op::sum) wrapped += uint64_t(value);
            if (op == Op::premul) wrapped += uint64_t(value) * uint64_t(scalar(rank));
            least = std::min(least, value);
            most = std::max(most, value);
        }
        if (op == Op::avg) return T(sum / world);
        if (op == Op::min) return least;
        if (op == Op::max) return most;
        return T(wrapped);
    }
};

template <class T>
struct Codec {
    static T encode(double value) { return T(value); }
};
template <int Exponent, int Fraction, bool Infinities>
struct Codec<NarrowFloat<Exponent, Fraction, Infinities>> {
    static auto encode(double value) { return NarrowFloat<Exponent, Fraction, Infinities>::nearest(value); }
};

// Inputs are integers below 2^Bits in magnitude: with kMostExactRanks and factors up to Factor the sums still fit the
// significand.
template <class T, int Bits, int Factor = 2>
struct Float {
    static double number(Op op, int rank, size_t index) {
        uint64_t bits = mix(rank, index);
        constexpr double kFactors[] = {1, 2, 0.5, -1};
        if (op == Op::prod) return kFactors[bits >> 62];
        double magnitude = double(bits >> (64 - Bits));
        return bits & 1 ? -magnitude : magnitude;
    }
    static double factor(int rank) {
        constexpr double kFactors[] = {1, Factor, -1, -Factor};
        return kFactors[rank % 4];
    }

    static T input(Op op, int rank, size_t index) { return Codec<T>::encode(number(op, rank, index) + 0.0); }
    static T scalar(int rank) { return Codec<T>::encode(factor(rank)); }

    static T result(Op op, int world, size_t index) {
        double total = number(op, 0, index) + 0.0;
        if (op == Op::premul) total *= factor(0);
        for (int rank = 1; rank < world; ++rank) {
            double value = number(op, rank, index) + 0.0;
            switch (op) {
                case Op::prod:
                    total *= value;
                    break;
                case Op::max:
                    total = std::max(total, value);
                    break;
                case Op::min:
                    total = std::min(total, value);
                    break;
                case Op::premul:
                    total += value * factor(rank);
                    break;
                default:
                    total += value;
            }
        }
        return Codec<T>::encode(op == Op::avg ? total / world : total);
    }
};

template <class F>
auto with_type(ringDataType_t type, F&& f) {
    switch (type) {
        case ringInt8:
            return f(Integer<int8_t>());
        case ringUint8:
            return f(Integer<uint8_t>());
        case ringInt32:
            return f(Integer<int32_t>());
        case ringUint32:
            return f(Integer<uint32_t>());
        case ringInt64:
            return f(Integer<int64_t>());
        case ringUint64:
            return f(Integer<uint64_t>());
        case ringFloat16:
            return f(Float<Half, 7>());
        case ringFloat32:
            return f(Float<float, 18>());
        case ringFloat64:
            return f(Float<double, 40>());
        case ringBfloat16:
            return f(Float<Bfloat, 4>());
        case ringFloat8e4m3:
            return f(Float<Float8e4m3, 1>());
        case ringFloat8e5m2:
            return f(Float<Float8e5m2, 1, 1>());
    }
    std::abort();
}

// Elements are stored bytewise: the buffers of the tests have any alignment.
template <class T>
void store(std::byte* at, size_t index, T value) {
    std::memcpy(at + index * sizeof(T), &value, sizeof(T));
}

}  // namespace

ringRedOp_t public_op(Op op) {
    switch (op) {
        case Op::prod:
            return ringProd;
        case Op::max:
            return ringMax;
        case Op::min:
            return ringMin;
        case Op::avg:
            return ringAvg;
        default:
            return ringSum;
    }
}

void put_inputs(std::byte* at, ringDataType_t type, Op op, int rank, size_t first, size_t count) {
    with_type(type, [&](auto element) {
        for (size_t i = 0; i < count; ++i) store(at, i, element.input(op, rank, first + i));
    });
}

void put_results(std::byte* at, ringDataType_t type, Op op, int world, size_t first, size_t count) {
    with_type(type, [&](auto element) {
        for (size_t i = 0; i < count; ++i) store(at, i, element.result(op, world, first + i));
    });
}

std::vector<std::byte> premul_scalar(ringDataType_t type, int rank) {
    return with_type(type, [&](auto element) {
        std::vector<std::byte> bytes(sizeof(element.scalar(rank)));
        store(bytes.data(), 0, element.scalar(rank));
        return bytes;
    });
}

}  // namespace ringccl::test
