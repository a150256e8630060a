#include "device/host_device.h"

#include <algorithm>

namespace ringccl {
namespace {

constexpr size_t kPiece = 16 << 10;  // bytes: half of a small first-level cache

}  // namespace

// A result that bypasses the caches is made in pieces that do not leave the nearest one until they are copied out.
void HostDevice::reduce(int, const Kernel& kernel, void* dst, const void* const* src, int k, size_t count, const Scale& scale,
                        bool past_caches) {
    if (!past_caches) return kernel.host(dst, src, k, count, scale);
    alignas(64) std::byte piece[kPiece];
    const size_t element = type_size(kernel.type), whole = kPiece / element;
    operands_.assign(src, src + k);
    for (size_t done = 0; done < count; done += whole) {
        const size_t now = std::min(whole, count - done);
        kernel.host(piece, operands_.data(), k, now, scale);
        copy_bytes(static_cast<std::byte*>(dst) + done * element, piece, now * element, true);
        for (const void*& operand : operands_) operand = static_cast<const std::byte*>(operand) + now * element;
    }
    flush_streams();
}

void HostDevice::copy(int, void* dst, const void* src, size_t bytes, bool past_caches) {
    copy_bytes(dst, src, bytes, past_caches);
    if (past_caches) flush_streams();
}

std::byte* HostDevice::scratch(int lane, size_t bytes, bool landing) {
    auto& memory = scratches_[lane][landing];
    if (memory.size() < bytes + kAlign) memory.resize(bytes + kAlign);
    const auto at = reinterpret_cast<uintptr_t>(memory.data());
    return memory.data() + (kAlign - at % kAlign) % kAlign;
}

}  // namespace ringccl
