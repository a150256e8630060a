// Copies and fills. Which of them the caller waits for follows "API synchronization behavior" in the runtime's documentation,
// and where that says "may", the stand-in takes what catches more: a program that counts on the kinder reading fails here.
#include <cuda_runtime_api.h>

#include <cstring>
#include <memory>
#include <vector>

#include "call.h"
#include "memory.h"
#include "stream_handle.h"

using namespace standin;

namespace {

enum class Place { pageable, pinned, device };

Place place_of(const void* pointer, size_t bytes) {
    SharedAllocation allocation = memory().find(pointer);
    if (!allocation) return Place::pageable;
    if (allocation->on_device()) return Place::device;
    return allocation->contains(pointer, bytes) ? Place::pinned : Place::pageable;
}

bool fits(cudaMemcpyKind kind, Place to, Place from) {
    switch (kind) {
        case cudaMemcpyHostToHost:
            return to != Place::device && from != Place::device;
        case cudaMemcpyHostToDevice:
            return to != Place::pageable && from != Place::device;
        case cudaMemcpyDeviceToHost:
            return to != Place::device && from != Place::pageable;
        case cudaMemcpyDeviceToDevice:
            return to != Place::pageable && from != Place::pageable;
        case cudaMemcpyDefault:
            return true;
    }
    return false;
}

struct Copy {
    void* to;
    const void* from;
    size_t bytes;
    int to_device, from_device;  // physical: whose right of access counts

    void run() const {
        if (!memory().may_touch(to_device, to, bytes, true) || !memory().may_touch(from_device, from, bytes, false))
            return set_sticky_error(cudaErrorIllegalAddress);
        Memory::Touch touch;
        announce_read(from, bytes);
        announce_write(to, bytes);
        std::memmove(to, from, bytes);
    }
};

// The source is read at once, and may change when this returns.
void submit_staged(Stream& stream, Copy copy) {
    auto stage = std::make_shared<std::vector<char>>(copy.bytes);
    announce_read(copy.from, copy.bytes);
    std::memcpy(stage->data(), copy.from, copy.bytes);
    stream.device().submit(stream, [copy, stage]() mutable {
        if (!memory().may_touch(copy.to_device, copy.to, copy.bytes, true)) return set_sticky_error(cudaErrorIllegalAddress);
        Memory::Touch touch;
        announce_write(copy.to, copy.bytes);
        std::memcpy(copy.to, stage->data(), copy.bytes);
    });
}

cudaError_t submit(Stream& stream, const Copy& copy, cudaMemcpyKind kind, bool synchronous) {
    Place to = place_of(copy.to, copy.bytes), from = place_of(copy.from, copy.bytes);
    if (!fits(kind, to, from)) return cudaErrorInvalidValue;
    if (copy.bytes == 0) return cudaSuccess;
    if (from == Place::pageable && to == Place::device) {
        if (synchronous) stream.device().submit(stream, nullptr)->wait();
        submit_staged(stream, copy);
        return cudaSuccess;
    }
    Work::Shared work = stream.device().submit(stream, [copy] { copy.run(); });
    bool both_on_device = to == Place::device && from == Place::device;
    bool waits = (synchronous && !both_on_device) || to == Place::pageable || from == Place::pageable;
    if (!waits) return cudaSuccess;
    work->wait();
    return sticky_error();
}

cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t handle, bool synchronous) {
    SharedStream stream = find_stream(handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    int device = stream->device().physical();
    return submit(*stream, {to, from, bytes, device, device}, kind, synchronous);
}

// Between devices without peer access the driver goes through the host, so each side is touched by its own device.
cudaError_t copy_peer(void* to, int to_number, const void* from, int from_number, size_t bytes, cudaStream_t handle,
                      bool synchronous) {
    SharedStream stream = find_stream(handle);
    Device *to_device = find_device(to_number), *from_device = find_device(from_number);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (!to_device || !from_device) return cudaErrorInvalidDevice;
    Copy copy{to, from, bytes, to_device->physical(), from_device->physical()};
    return submit(*stream, copy, cudaMemcpyDeviceToDevice, synchronous);
}

cudaError_t fill(void* to, int value, size_t bytes, cudaStream_t handle, bool synchronous) {
    SharedStream stream = find_stream(handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    Place place = place_of(to, bytes);
    if (place == Place::pageable) return cudaErrorInvalidValue;
    if (bytes == 0) return cudaSuccess;
    int device = stream->device().physical();
    Work::Shared work = stream->device().submit(*stream, [=] {
        if (!memory().may_touch(device, to, bytes, true)) return set_sticky_error(cudaErrorIllegalAddress);
        Memory::Touch touch;
        announce_write(to, bytes);
        std::memset(to, value, bytes);
    });
    if (!synchronous || place == Place::device) return cudaSuccess;
    work->wait();
    return sticky_error();
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return call(__func__, [&] { return copy(to, from, bytes, kind, cudaStreamLegacy, true); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    return call(__func__, [&] { return copy(to, from, bytes, kind, stream, false); });
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
    return call(__func__, [&] { return copy_peer(to, to_device, from, from_device, bytes, cudaStreamLegacy, true); });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes, cudaStream_t stream) {
    return call(__func__, [&] { return copy_peer(to, to_device, from, from_device, bytes, stream, false); });
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
    return call(__func__, [&] { return fill(to, value, bytes, cudaStreamLegacy, true); });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
    return call(__func__, [&] { return fill(to, value, bytes, stream, false); });
}

}  // extern "C"
