// Where the bits of a float of 16 bits or fewer lie, as IEEE 754 has them: what every processor's conversions go by.
#pragma once

#include <bit>
#include <cstdint>

namespace ringccl {

// Without infinities there is one NaN of each sign, all ones, and the highest exponent is one more for numbers.
template <int kExponentBits, int kFractionBits, bool kInfinities>
struct SmallFloatLayout {
    static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
    static constexpr int kSpare = 23 - kFractionBits;  // bits of a float32's fraction that go
    static constexpr int kSignShift = 31 - kExponentBits - kFractionBits;
    static constexpr uint32_t kSign = 1u << (kExponentBits + kFractionBits);
    static constexpr uint32_t kInfinity = ((1u << kExponentBits) - 1) << kFractionBits;
    static constexpr uint32_t kNan = kInfinities ? kInfinity | 1u << (kFractionBits - 1) : kSign - 1;

    // Exponent and fraction, moved to their places in a float32, are a number that is too small by this exact factor.
    static constexpr float kFactor = std::bit_cast<float>((127u + 127u - kBias) << 23);
    // From this float32 on, what has been widened so is infinite or NaN ...
    static constexpr float kSpecial = std::bit_cast<float>((kInfinities ? kInfinity : kNan) << kSpare) * kFactor;
    // ... and from these bits of one on, which is half a unit below, rounding leads there. In that tie infinity is even; the
    // NaN in its place is odd, so the tie still rounds to a number.
    static constexpr uint32_t kOverflow = std::bit_cast<uint32_t>(kSpecial) - (1u << (kSpare - 1)) + (kInfinities ? 0 : 1);

    // The float32 numbers around this one have the unit that denormals have: adding it makes the hardware round there.
    static constexpr uint32_t kDenormalUnit = (127u + 24u - kBias - kFractionBits) << 23;
    static constexpr uint32_t kLeastNormal = (128u - kBias) << 23;
};

}  // namespace ringccl
