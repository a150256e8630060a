// Averages of integers: summed wide, divided once, truncated toward zero. Rare enough for plain code.
#include <cstring>
#include <type_traits>

#include "kernels/cpu/families.h"
#include "kernels/cpu/float_environment.h"

namespace ringccl {
namespace {

// Elements whose wide sums are held at a time: all sources pass over them while they are in the first-level cache.
constexpr size_t kBlock = 256;

template <class T>
T element(const void* src, size_t index) {
    T value;  // src may be odd
    std::memcpy(&value, static_cast<const uint8_t*>(src) + index * sizeof(T), sizeof(T));
    return value;
}

// Wide: int64_t for up to 32 bits, which holds 2^31 inputs; 128 bits of the same sign for 64.
template <class T, class Wide>
T quotient(Wide sum, int k, int divisor) {
    if constexpr (sizeof(Wide) == 8) {
        // A correctly rounded quotient of doubles truncates to the right integer while |sum| + divisor <= 2^52: the distance to
        // the next integer is at least 1 / divisor, more than a unit in the last place. It takes a fraction of the time.
        constexpr int kExact = 1 << 19;
        if (k <= kExact && divisor <= kExact) {
            return static_cast<T>(static_cast<int64_t>(static_cast<double>(sum) / divisor));
        }
        return static_cast<T>(sum / divisor);
    } else {
        // Most sums fit in 64 bits, and a division of 128 is a slow library call.
        using Narrow = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
        const auto narrow = static_cast<Narrow>(sum);
        if (static_cast<Wide>(narrow) == sum) return static_cast<T>(narrow / static_cast<Narrow>(divisor));
        return static_cast<T>(sum / static_cast<Wide>(divisor));
    }
}

template <class T, class Wide>
void average(void* dst, const void* const* src, int k, size_t count, const Scale& scale) {
    const FloatEnvironment environment;
    Wide sum[kBlock];
    T result[kBlock];
    for (size_t start = 0; start < count; start += kBlock) {
        const size_t n = count - start < kBlock ? count - start : kBlock;
        for (size_t i = 0; i < n; ++i) sum[i] = static_cast<Wide>(element<T>(src[0], start + i));
        for (int j = 1; j < k; ++j) {
            for (size_t i = 0; i < n; ++i) sum[i] += static_cast<Wide>(element<T>(src[j], start + i));
        }
        for (size_t i = 0; i < n; ++i) result[i] = quotient<T, Wide>(sum[i], k, scale.divisor);
        std::memcpy(static_cast<uint8_t*>(dst) + start * sizeof(T), result, n * sizeof(T));
    }
}

}  // namespace

ReduceKernel average_kernel(ringDataType_t type) {
    __extension__ using Int128 = __int128;
    __extension__ using Uint128 = unsigned __int128;
    switch (type) {
        case ringInt8:
            return &average<int8_t, int64_t>;
        case ringUint8:
            return &average<uint8_t, int64_t>;
        case ringInt32:
            return &average<int32_t, int64_t>;
        case ringUint32:
            return &average<uint32_t, int64_t>;
        case ringInt64:
            return &average<int64_t, Int128>;
        case ringUint64:
            return &average<uint64_t, Uint128>;
        default:
            return nullptr;
    }
}

}  // namespace ringccl
