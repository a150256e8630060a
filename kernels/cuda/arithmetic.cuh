// What becomes of two operands (Combine), and of the total before it is stored (Finish). NaN of any kind may come out of here:
// the formats write the one quiet NaN in its place.
#pragma once

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/formats.cuh"

namespace ringccl::cuda {

struct Sum {
    template <class Lane>
    static RINGCCL_DEVICE Lane combine(const Lane& a, const Lane& b) {
        return a + b;
    }
};

struct Prod {
    template <class Lane>
    static RINGCCL_DEVICE Lane combine(Lane a, Lane b) {
        return a * b;
    }
};

// A NaN operand makes NaN, and +0 is above -0: of equal numbers only zeros differ, and joining their bits gives the right one.
template <bool kLargest>
struct Extreme {
    template <class Lane>
    static RINGCCL_DEVICE Lane combine(Lane a, Lane b) {
        if constexpr (std::is_integral_v<Lane>) {
            return (a < b) == kLargest ? b : a;
        } else {
            using Bits = std::conditional_t<sizeof(Lane) == 8, uint64_t, uint32_t>;
            const Bits one = bits_as<Bits>(a), other = bits_as<Bits>(b);
            const Lane ordered = kLargest ? larger(a, b) : smaller(a, b);
            const Lane v = a == b ? bits_as<Lane>(kLargest ? one & other : one | other) : ordered;
            return a != a || b != b ? bits_as<Lane>(Float<Lane>::kNan) : v;
        }
    }
};
using Max = Extreme<true>;
using Min = Extreme<false>;

template <class T>
RINGCCL_DEVICE bool is_negative(T v) {
    if constexpr (std::is_signed_v<T>) {
        return v < 0;
    } else {
        return false;
    }
}

// ---- finishes ----

template <class Lane>
struct AsIs {
    RINGCCL_DEVICE explicit AsIs(const ReduceArguments&) {}
    RINGCCL_DEVICE Lane apply(const Lane& v) const { return v; }
};

template <class Lane>
struct Times {
    Lane factor;

    RINGCCL_DEVICE explicit Times(const ReduceArguments& arguments) {
        if constexpr (std::is_integral_v<Lane>) {
            factor = static_cast<Lane>(arguments.scalar_bits);
        } else {
            factor = static_cast<Lane>(arguments.scalar);
        }
    }
    RINGCCL_DEVICE Lane apply(Lane v) const { return v * factor; }
};

// Averages of floats. For a power of two the reciprocal is exact, so the product is the quotient to the bit, and much faster.
template <class Lane>
struct Over {
    Lane divisor, reciprocal;
    bool exact;

    RINGCCL_DEVICE explicit Over(const ReduceArguments& arguments)
        : divisor(static_cast<Lane>(arguments.divisor)),
          reciprocal(Lane{1} / divisor),
          exact((arguments.divisor & (arguments.divisor - 1)) == 0) {}
    RINGCCL_DEVICE Lane apply(Lane v) const { return exact ? v * reciprocal : v / divisor; }
};

// Averages of integers, truncated toward zero. Processors of this kind have no division: it is a multiplication by the
// reciprocal, rounded down, which gives the quotient or one less; the rest tells which.
template <class Lane>
struct Quotient {
    using Size = std::conditional_t<sizeof(Lane) == 4, uint32_t, uint64_t>;
    Size divisor, reciprocal;

    RINGCCL_DEVICE explicit Quotient(const ReduceArguments& arguments)
        : divisor(static_cast<Size>(arguments.divisor)),
          reciprocal(static_cast<Size>(arguments.reciprocal >> (64 - 8 * sizeof(Size)))) {}

    RINGCCL_DEVICE Lane apply(const Lane& sum) const {
        if constexpr (std::is_integral_v<Lane>) {
            const bool negative = is_negative(sum);
            const Size size = negative ? Size{0} - static_cast<Size>(sum) : static_cast<Size>(sum);
            Size rest;
            const Size quotient = divide(size, rest);
            return static_cast<Lane>(negative ? Size{0} - quotient : quotient);
        } else {
            return divide_wide(sum);
        }
    }

private:
    RINGCCL_DEVICE Size divide(Size size, Size& rest) const {
        Size quotient = multiply_high(size, reciprocal);
        rest = size - quotient * divisor;
        if (rest >= divisor) {
            rest -= divisor;
            ++quotient;
        }
        return quotient;
    }

    // By hand, in digits of 32 bits. The divisor is smaller than one, so a rest and a digit fit in 64 bits. The upper half of
    // the quotient is not wanted.
    template <class T>
    RINGCCL_DEVICE Wide<T> divide_wide(const Wide<T>& sum) const {
        const bool negative = is_negative(sum.high);
        const uint64_t low = negative ? uint64_t{0} - sum.low : sum.low;
        const uint64_t high = negative ? ~static_cast<uint64_t>(sum.high) + (sum.low == 0) : static_cast<uint64_t>(sum.high);
        uint64_t rest;
        divide(high, rest);
        const uint64_t upper = divide(rest << 32 | low >> 32, rest);
        const uint64_t lower = divide(rest << 32 | (low & 0xffffffffu), rest);
        const uint64_t quotient = upper << 32 | lower;
        return {negative ? uint64_t{0} - quotient : quotient, 0};
    }
};

}  // namespace ringccl::cuda
