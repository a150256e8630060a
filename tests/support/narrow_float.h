// IEEE 754 binary16 and bfloat16 for the tests: a second implementation, slow and plain, so that the library's own conversions
// are not measured with themselves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace ringccl::test {

// A 16-bit float with `Fraction` stored significand bits; the rest are the sign and the exponent.
template <int Fraction>
struct NarrowFloat {
    static constexpr int kBias = (1 << (14 - Fraction)) - 1;

    uint16_t bits = 0;

    double value() const {
        double sign = bits & 0x8000 ? -1 : 1;
        int exponent = (bits & 0x7fff) >> Fraction;
        int fraction = bits & ((1 << Fraction) - 1);
        if (exponent == 2 * kBias + 1) return fraction ? NAN : sign * INFINITY;
        if (exponent == 0) return sign * std::ldexp(fraction, 1 - kBias - Fraction);
        return sign * std::ldexp(fraction + (1 << Fraction), exponent - kBias - Fraction);
    }

    // The nearest value, ties to even.
    static NarrowFloat nearest(double value) {
        uint16_t sign = std::signbit(value) ? 0x8000 : 0;
        constexpr int kInfinity = (2 * kBias + 1) << Fraction;
        if (std::isnan(value)) return {uint16_t(sign | kInfinity | 1 << (Fraction - 1))};
        if (std::isinf(value)) return {uint16_t(sign | kInfinity)};
        // The exponent of the last significand bit; it stops falling where numbers become subnormal.
        int last = std::max(value == 0 ? 1 - kBias : std::ilogb(value), 1 - kBias) - Fraction;
        int steps = int(std::nearbyint(std::ldexp(std::fabs(value), -last)));
        // Adding, not or-ing: a significand that rounds up to 2 carries into the exponent, which is right.
        int encoded = steps + ((last + kBias + Fraction - 1) << Fraction);
        return {uint16_t(sign | (encoded < kInfinity ? encoded : kInfinity))};
    }
};

using Half = NarrowFloat<10>;
using Bfloat = NarrowFloat<7>;

}  // namespace ringccl::test
