// Allocations of devices and of pinned host memory, and what CUDA knows about a pointer.
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <memory>

#include "call.h"
#include "device.h"
#include "memory.h"
#include "stream_handle.h"

using namespace standin;

namespace {

using Kind = Allocation::Kind;

auto of_kind(Kind kind) {
    return [kind](const Allocation& allocation) { return allocation.kind == kind; };
}

bool freeable(const Allocation& allocation) {
    return allocation.kind == Kind::device || allocation.kind == Kind::pooled;
}

cudaError_t allocate(void** pointer, size_t bytes, Kind kind, Device& device) {
    if (!pointer) return cudaErrorInvalidValue;
    *pointer = nullptr;
    if (bytes == 0) return cudaSuccess;
    SharedAllocation allocation = memory().allocate(kind, bytes, device.physical());
    if (!allocation) return cudaErrorMemoryAllocation;
    *pointer = allocation->base;
    return cudaSuccess;
}

cudaError_t allocate_pinned(void** pointer, size_t bytes, unsigned flags) {
    if (!pointer) return cudaErrorInvalidValue;
    *pointer = nullptr;
    if (bytes == 0) return cudaSuccess;
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return cudaErrorMemoryAllocation;
    auto allocation = std::make_shared<Allocation>();
    allocation->kind = Kind::pinned;
    allocation->base = static_cast<char*>(base);
    allocation->size = bytes;
    allocation->device = current_device().physical();
    allocation->flags = flags & cudaHostAllocPortable;
    memory().add(std::move(allocation));
    *pointer = base;
    return cudaSuccess;
}

// As this process counts them, whose memory it may be that belongs to a device that is hidden from it.
int number_of(int physical_device) {
    for (int number = 0; number < device_count(); number++)
        if (find_device(number)->physical() == physical_device) return number;
    return cudaInvalidDeviceId;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
    return call(__func__, [&] { return allocate(pointer, bytes, Kind::device, current_device()); });
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t handle) {
    return call(__func__, [&] {
        SharedStream stream = find_stream(handle);
        return stream ? allocate(pointer, bytes, Kind::pooled, stream->device()) : cudaErrorInvalidResourceHandle;
    });
}

// Waits for all that the device does, as the real one does; on a data path that is a fault.
cudaError_t cudaFree(void* pointer) {
    return call(__func__, [&] {
        if (!pointer) return cudaSuccess;
        SharedAllocation found = memory().find(pointer);
        if (!found || found->base != pointer || !freeable(*found)) return cudaErrorInvalidValue;
        for (int number = 0; number < device_count(); number++)
            if (find_device(number)->physical() == found->device) find_device(number)->synchronize();
        SharedAllocation allocation = memory().remove(pointer, freeable);
        if (!allocation) return cudaErrorInvalidValue;
        memory().bury(allocation);
        return sticky_error();
    });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t handle) {
    return call(__func__, [&] {
        SharedStream stream = find_stream(handle);
        if (!stream) return cudaErrorInvalidResourceHandle;
        SharedAllocation found = memory().find(pointer);
        if (!found || found->base != pointer || !freeable(*found)) return cudaErrorInvalidValue;
        stream->device().submit(*stream, [pointer] {
            if (SharedAllocation allocation = memory().remove(pointer, freeable)) memory().bury(allocation);
        });
        return cudaSuccess;
    });
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
    return call(__func__, [&] { return allocate_pinned(pointer, bytes, flags); });
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
    return call(__func__, [&] { return allocate_pinned(pointer, bytes, cudaHostAllocDefault); });
}

cudaError_t cudaFreeHost(void* pointer) {
    return call(__func__, [&] {
        if (!pointer) return cudaSuccess;
        if (!memory().find(pointer)) return cudaErrorInvalidValue;
        for (int number = 0; number < device_count(); number++) find_device(number)->synchronize();
        SharedAllocation allocation = memory().remove(pointer, of_kind(Kind::pinned));
        if (!allocation) return cudaErrorInvalidValue;
        munmap(allocation->base, allocation->size);
        return sticky_error();
    });
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
    constexpr unsigned known =
        cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
    return call(__func__, [&] {
        if (!pointer || bytes == 0 || (flags & ~known)) return cudaErrorInvalidValue;
        if (SharedAllocation overlap = memory().find_overlap(pointer, bytes))
            return overlap->on_device() ? cudaErrorInvalidValue : cudaErrorHostMemoryAlreadyRegistered;
        auto allocation = std::make_shared<Allocation>();
        allocation->kind = Kind::registered;
        allocation->base = static_cast<char*>(pointer);
        allocation->size = bytes;
        allocation->device = current_device().physical();
        allocation->flags = flags;
        memory().add(std::move(allocation));
        return cudaSuccess;
    });
}

cudaError_t cudaHostUnregister(void* pointer) {
    return call(__func__, [&] {
        return memory().remove(pointer, of_kind(Kind::registered)) ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
    });
}

cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* host_pointer, unsigned flags) {
    return call(__func__, [&] {
        SharedAllocation allocation = memory().find(host_pointer);
        if (flags != 0 || !allocation || allocation->on_device()) return cudaErrorInvalidValue;
        *device_pointer = host_pointer;
        return cudaSuccess;
    });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    return call(__func__, [&] {
        *attributes = {};
        attributes->device = cudaInvalidDeviceId;
        void* address = const_cast<void*>(pointer);
        SharedAllocation allocation = memory().find(pointer);
        if (!allocation) {
            attributes->type = cudaMemoryTypeUnregistered;
            attributes->hostPointer = address;
            return cudaSuccess;
        }
        attributes->type = allocation->on_device() ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
        attributes->device = number_of(allocation->device);
        attributes->devicePointer = address;
        attributes->hostPointer = allocation->on_device() ? nullptr : address;
        return cudaSuccess;
    });
}

}  // extern "C"
