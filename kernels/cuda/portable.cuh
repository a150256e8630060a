// The instructions that the kernels want by name, each beside the C++ that means the same. g++ compiles the latter: a test then
// runs the very source of the kernels on any machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __USE_FAST_MATH__
#error "these kernels promise bits: no fast math"
#endif

#ifdef __CUDACC__
#define RINGCCL_DEVICE __device__ __forceinline__
#define RINGCCL_UNROLL _Pragma("unroll")
#else
#define RINGCCL_DEVICE inline
#define RINGCCL_UNROLL
#endif

namespace ringccl::cuda {

template <class To, class From>
RINGCCL_DEVICE To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    return __builtin_bit_cast(To, from);
}

struct Vector {
    uint32_t words[4];
};

// At aligned places. A load must not pass through the cache for constants: the memory may be another kernel's to write.
RINGCCL_DEVICE Vector load_vector(const uint8_t* at) {
#ifdef __CUDACC__
    const uint4 v = *reinterpret_cast<const uint4*>(at);
    return {{v.x, v.y, v.z, v.w}};
#else
    Vector v;
    std::memcpy(&v, at, sizeof v);
    return v;
#endif
}

RINGCCL_DEVICE void store_vector(uint8_t* at, const Vector& v) {
#ifdef __CUDACC__
    *reinterpret_cast<uint4*>(at) = make_uint4(v.words[0], v.words[1], v.words[2], v.words[3]);
#else
    std::memcpy(at, &v, sizeof v);
#endif
}

// Sees what the host wrote before it stored the word.
RINGCCL_DEVICE uint32_t load_acquire(const uint32_t* word) {
#ifdef __CUDACC__
    uint32_t value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
#else
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#endif
}

// In a loop that waits.
#ifdef __CUDACC__
RINGCCL_DEVICE void pause() {
    __nanosleep(200);
}
#else
void pause();
#endif

// The 32 bits from bit `shift` (0 .. 31) on of the 64 that the two words make.
RINGCCL_DEVICE uint32_t funnel_right(uint32_t low, uint32_t high, uint32_t shift) {
#ifdef __CUDACC__
    return __funnelshift_r(low, high, shift);
#else
    return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> shift);
#endif
}

// The upper half of the product.
RINGCCL_DEVICE uint32_t multiply_high(uint32_t a, uint32_t b) {
    return static_cast<uint32_t>(uint64_t{a} * b >> 32);
}
RINGCCL_DEVICE uint64_t multiply_high(uint64_t a, uint64_t b) {
#ifdef __CUDACC__
    return __umul64hi(a, b);
#else
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>(Wide{a} * b >> 64);
#endif
}

// The larger or smaller of two numbers, neither of them NaN; of two zeros any.
RINGCCL_DEVICE float larger(float a, float b) {
#ifdef __CUDACC__
    return fmaxf(a, b);
#else
    return a < b ? b : a;
#endif
}
RINGCCL_DEVICE float smaller(float a, float b) {
#ifdef __CUDACC__
    return fminf(a, b);
#else
    return b < a ? b : a;
#endif
}
// By integers, which order as the numbers do once those below zero are turned round: most processors of this kind are slow at
// comparing doubles.
RINGCCL_DEVICE int64_t order_of(double v) {
    const auto bits = bits_as<int64_t>(v);
    return bits ^ static_cast<int64_t>(static_cast<uint64_t>(bits >> 63) >> 1);
}
RINGCCL_DEVICE double larger(double a, double b) {
    return order_of(a) < order_of(b) ? b : a;
}
RINGCCL_DEVICE double smaller(double a, double b) {
    return order_of(b) < order_of(a) ? b : a;
}

}  // namespace ringccl::cuda
