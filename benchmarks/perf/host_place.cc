#include "perf/host_place.h"

#include <fmt/format.h>

#include <cstring>
#include <new>
#include <stdexcept>

namespace ringccl::perf {
namespace {

constexpr std::align_val_t kPage{4096};

void need(ringResult_t result, const char* call) {
    if (result == ringSuccess) return;
    throw std::runtime_error(fmt::format("{} failed: {}: {}", call, ringGetErrorString(result), ringGetLastError(nullptr)));
}

}  // namespace

HostPlace::HostPlace(bool ring_memory, bool stream) : ring_memory_(ring_memory) {
    if (stream) need(ringStreamCreate(&stream_), "ringStreamCreate");
}

HostPlace::~HostPlace() {
    if (stream_) ringStreamDestroy(stream_);
}

std::byte* HostPlace::allocate(size_t bytes) {
    void* memory = nullptr;
    if (ring_memory_) {
        need(ringMemAlloc(&memory, bytes), "ringMemAlloc");
    } else {
        memory = ::operator new(bytes, kPage, std::nothrow);
        if (!memory) throw std::runtime_error(fmt::format("no memory for a buffer of {} bytes; use a smaller -e", bytes));
    }
    return static_cast<std::byte*>(memory);
}

void HostPlace::release(std::byte* memory) {
    if (ring_memory_) {
        ringMemFree(memory);
    } else {
        ::operator delete(memory, kPage);
    }
}

void HostPlace::copy(void* to, const void* from, size_t bytes) {
    std::memcpy(to, from, bytes);
}

void HostPlace::wait() {
    if (stream_) need(ringStreamSynchronize(stream_), "ringStreamSynchronize");
}

}  // namespace ringccl::perf
