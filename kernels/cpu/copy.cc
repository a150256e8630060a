// Copying past the caches.
#include <cstring>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/copy.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ringccl {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Streaming stores want whole, aligned lines; the ends are copied as usual.
void StreamBytes(uint8_t* dst, const uint8_t* src, size_t bytes) {
    const hn::ScalableTag<uint8_t> d;
    constexpr size_t kLine = 64;
    const size_t step = HWY_MAX(hn::Lanes(d), kLine);
    const size_t head = HWY_MIN((step - reinterpret_cast<uintptr_t>(dst) % step) % step, bytes);
    std::memcpy(dst, src, head);
    size_t at = head;
    for (; bytes - at >= step; at += step) {
        for (size_t part = 0; part < step; part += hn::Lanes(d)) {
            hn::Stream(hn::LoadU(d, src + at + part), d, dst + at + part);
        }
    }
    std::memcpy(dst + at, src + at, bytes - at);
}

const char* TargetName() {
    return hwy::TargetName(HWY_TARGET);
}

}  // namespace HWY_NAMESPACE
}  // namespace ringccl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ringccl {

HWY_EXPORT(StreamBytes);
HWY_EXPORT(TargetName);

void copy_bytes(void* dst, const void* src, size_t bytes, bool streaming) {
    if (bytes == 0 || dst == src) return;
    if (streaming) {
        HWY_DYNAMIC_DISPATCH(StreamBytes)(static_cast<uint8_t*>(dst), static_cast<const uint8_t*>(src), bytes);
    } else {
        std::memcpy(dst, src, bytes);
    }
}

void flush_streams() {
    hwy::FlushStream();
}

const char* kernel_target() {
    return HWY_DYNAMIC_DISPATCH(TargetName)();
}

}  // namespace ringccl
#endif
