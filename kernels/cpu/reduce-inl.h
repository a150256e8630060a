// The one loop under every kernel. It is compiled once per instruction set and put together from three parts:
//
//   Format   how elements lie in memory and in which lanes they are computed: always two vectors of lanes, a and b
//   Combine  what two operands become
//   Finish   what becomes of the total before it is stored
//
// All k sources are combined in registers in one pass, so dst is written once and read never (unless it is a source).
// Whole vectors and the rest at the end go through the same vector arithmetic: where an element lies cannot change its bits.

#if defined(RINGCCL_KERNELS_CPU_REDUCE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef RINGCCL_KERNELS_CPU_REDUCE_INL_H
#undef RINGCCL_KERNELS_CPU_REDUCE_INL_H
#else
#define RINGCCL_KERNELS_CPU_REDUCE_INL_H
#endif

#include <algorithm>
#include <cstring>

#include "hwy/highway.h"
#include "kernels/cpu/float_environment.h"
#include "kernels/cpu/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace ringccl {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ---- access to memory, always as bytes: pointers may be odd ----

using Bytes = hn::ScalableTag<uint8_t>;

HWY_INLINE const uint8_t* bytes_of(const void* memory) {
    return static_cast<const uint8_t*>(memory);
}

// `d` is Bytes, or a half of it for formats that grow twofold.
struct Whole {
    template <class D = Bytes>
    HWY_INLINE hn::Vec<D> load(const uint8_t* at, size_t offset, D d = D()) const {
        return hn::LoadU(d, at + offset);
    }
    template <class D = Bytes>
    HWY_INLINE void store(hn::Vec<D> v, uint8_t* at, size_t offset, D d = D()) const {
        hn::StoreU(v, d, at + offset);
    }
};

// The first `bytes` only; what is behind them is neither read nor written, and counts as zero.
struct Part {
    size_t bytes;

#if HWY_MEM_OPS_MIGHT_FAULT
    template <class D = Bytes>
    HWY_INLINE hn::Vec<D> load(const uint8_t* at, size_t offset, D d = D()) const {
        HWY_ALIGN uint8_t scratch[HWY_MAX_BYTES] = {};
        if (offset < bytes) std::memcpy(scratch, at + offset, length(offset, d));
        return hn::Load(d, scratch);
    }
    template <class D = Bytes>
    HWY_INLINE void store(hn::Vec<D> v, uint8_t* at, size_t offset, D d = D()) const {
        HWY_ALIGN uint8_t scratch[HWY_MAX_BYTES];
        hn::Store(v, d, scratch);
        if (offset < bytes) std::memcpy(at + offset, scratch, length(offset, d));
    }
#else
    template <class D = Bytes>
    HWY_INLINE hn::Vec<D> load(const uint8_t* at, size_t offset, D d = D()) const {
        return hn::MaskedLoad(hn::FirstN(d, length(offset, d)), d, at + offset);
    }
    template <class D = Bytes>
    HWY_INLINE void store(hn::Vec<D> v, uint8_t* at, size_t offset, D d = D()) const {
        hn::BlendedStore(v, hn::FirstN(d, length(offset, d)), d, at + offset);
    }
#endif

    template <class D>
    HWY_INLINE size_t length(size_t offset, D d) const {
        return offset < bytes ? std::min(bytes - offset, hn::Lanes(d)) : 0;
    }
};

// ---- formats ----

// Elements that are computed as they lie in memory.
template <class T>
struct Plain {
    using Lane = T;
    using D = hn::ScalableTag<T>;
    using V = hn::Vec<D>;
    static constexpr size_t kElementBytes = sizeof(T);
    static size_t block_bytes() { return 2 * hn::Lanes(Bytes()); }

    template <class Access>
    static HWY_INLINE void load(Access access, const uint8_t* at, V& a, V& b) {
        a = hn::BitCast(D(), access.load(at, 0));
        b = hn::BitCast(D(), access.load(at, hn::Lanes(Bytes())));
    }
    template <class Access>
    static HWY_INLINE void store(Access access, V a, V b, uint8_t* at) {
        access.store(hn::BitCast(Bytes(), a), at, 0);
        access.store(hn::BitCast(Bytes(), b), at, hn::Lanes(Bytes()));
    }
};

// ---- what two operands become ----

struct Sum {
    template <class D, class V>
    static HWY_INLINE V combine(D, V a, V b) {
        return hn::Add(a, b);
    }
};

// ---- the loop ----

// The portable code is for processors that nobody trains on any more: it stays short, to be quick to compile.
constexpr bool kUnroll = HWY_TARGET != HWY_EMU128;

template <class Format, class Combine, class Finish, class Access>
HWY_INLINE void reduce_block(uint8_t* dst, const void* const* src, int k, size_t at, const Finish& finish, Access access) {
    const typename Format::D d;
    typename Format::V a, b, x, y;
    Format::load(access, bytes_of(src[0]) + at, a, b);
    for (int j = 1; j < k; ++j) {
        Format::load(access, bytes_of(src[j]) + at, x, y);
        a = Combine::combine(d, a, x);
        b = Combine::combine(d, b, y);
    }
    Format::store(access, finish.apply(d, a), finish.apply(d, b), dst + at);
}

// kFixed: the number of sources if it is known when compiling, else 0.
template <int kFixed, class Format, class Combine, class Finish>
HWY_NOINLINE void reduce_all(uint8_t* dst, const void* const* sources, int k, size_t count, const Finish& finish) {
    const typename Format::D d;
    const size_t block = Format::block_bytes();
    const size_t total = count * Format::kElementBytes;

    // A copy of the pointers on our own stack, so that the compiler knows that stores to dst do not change them.
    const void* fixed[kFixed ? kFixed : 1];
    for (int j = 0; j < kFixed; ++j) fixed[j] = sources[j];
    const void* const* src = kFixed ? fixed : sources;
    if (kFixed) k = kFixed;

    // Four vectors at a time: their loads are in flight together, and no addition waits for the one before.
    size_t at = 0;
    for (; kUnroll && total - at >= 2 * block; at += 2 * block) {
        typename Format::V a0, b0, a1, b1, x0, y0, x1, y1;
        Format::load(Whole(), bytes_of(src[0]) + at, a0, b0);
        Format::load(Whole(), bytes_of(src[0]) + at + block, a1, b1);
        for (int j = 1; j < k; ++j) {
            Format::load(Whole(), bytes_of(src[j]) + at, x0, y0);
            Format::load(Whole(), bytes_of(src[j]) + at + block, x1, y1);
            a0 = Combine::combine(d, a0, x0);
            b0 = Combine::combine(d, b0, y0);
            a1 = Combine::combine(d, a1, x1);
            b1 = Combine::combine(d, b1, y1);
        }
        Format::store(Whole(), finish.apply(d, a0), finish.apply(d, b0), dst + at);
        Format::store(Whole(), finish.apply(d, a1), finish.apply(d, b1), dst + at + block);
    }
    for (; total - at >= block; at += block) reduce_block<Format, Combine>(dst, src, k, at, finish, Whole());
    if (at < total) reduce_block<Format, Combine>(dst, src, k, at, finish, Part{total - at});
}

template <class Format, class Combine, class Finish>
void reduce_any(void* dst, const void* const* src, int k, size_t count, const Finish& finish) {
    const FloatEnvironment environment;  // a few cycles, so integers may have it too
    auto* to = static_cast<uint8_t*>(dst);
    // Two is by far the most frequent: every step of a ring, every receive-and-reduce of a tree.
    if (kUnroll && k == 2) {
        reduce_all<kUnroll ? 2 : 0, Format, Combine>(to, src, k, count, finish);
    } else {
        reduce_all<0, Format, Combine>(to, src, k, count, finish);
    }
}

// A kernel whose result for one source is that source, bit by bit.
template <class Format, class Combine, class Finish>
void reduce(void* dst, const void* const* src, int k, size_t count, const Scale&) {
    if (k == 1) return copy_bytes(dst, src[0], count * Format::kElementBytes, false);
    reduce_any<Format, Combine>(dst, src, k, count, Finish());
}

}  // namespace HWY_NAMESPACE
}  // namespace ringccl
HWY_AFTER_NAMESPACE();

#endif  // per target
