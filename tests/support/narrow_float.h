// The floats of 8 and 16 bits for the tests: a second implementation, slow and plain, so that the library's own conversions are
// not measured with themselves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace ringccl::test {

// A float with `Exponent` and `Fraction` stored bits and a sign, as IEEE 754 would have it. Without infinities the highest
// exponent holds numbers too, and the one encoding whose bits are all set is NaN.
template <int Exponent, int Fraction, bool Infinities = true>
struct NarrowFloat {
    using Bits = std::conditional_t<(1 + Exponent + Fraction > 8), uint16_t, uint8_t>;
    static constexpr int kBias = (1 << (Exponent - 1)) - 1;
    static constexpr int kSign = 1 << (Exponent + Fraction);
    static constexpr int kInfinity = (2 * kBias + 1) << Fraction;
    static constexpr int kNan = Infinities ? kInfinity | 1 << (Fraction - 1) : kSign - 1;
    static constexpr int kOverflow = Infinities ? kInfinity : kNan;  // what too large numbers become

    Bits bits = 0;

    double value() const {
        double sign = bits & kSign ? -1 : 1;
        int size = bits & (kSign - 1);
        int exponent = size >> Fraction;
        int fraction = size & ((1 << Fraction) - 1);
        if (size >= kOverflow) return size == kInfinity ? sign * INFINITY : NAN;
        if (exponent == 0) return sign * std::ldexp(fraction, 1 - kBias - Fraction);
        return sign * std::ldexp(fraction + (1 << Fraction), exponent - kBias - Fraction);
    }

    // The nearest value, ties to even.
    static NarrowFloat nearest(double value) {
        int sign = std::signbit(value) ? kSign : 0;
        if (std::isnan(value)) return {Bits(sign | kNan)};
        if (std::isinf(value)) return {Bits(sign | kOverflow)};
        // The exponent of the last significand bit; it stops falling where numbers become subnormal.
        int last = std::max(value == 0 ? 1 - kBias : std::ilogb(value), 1 - kBias) - Fraction;
        int steps = int(std::nearbyint(std::ldexp(std::fabs(value), -last)));
        // Adding, not or-ing: a significand that rounds up to 2 carries into the exponent, which is right.
        int encoded = steps + ((last + kBias + Fraction - 1) << Fraction);
        return {Bits(sign | (encoded < kOverflow ? encoded : kOverflow))};
    }
};

using Half = NarrowFloat<5, 10>;
using Bfloat = NarrowFloat<8, 7>;
using Float8e4m3 = NarrowFloat<4, 3, false>;
using Float8e5m2 = NarrowFloat<5, 2>;

}  // namespace ringccl::test
