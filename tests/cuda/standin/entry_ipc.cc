// Device memory of other processes. A handle names the whole allocation: where in it something lies must travel beside it.
#include <cuda_runtime_api.h>

#include <cstring>
#include <memory>

#include "call.h"
#include "device.h"
#include "memory.h"

using namespace standin;

namespace {

using Kind = Allocation::Kind;

bool same(const cudaIpcMemHandle_t& a, const cudaIpcMemHandle_t& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

// Held while a handle is opened or closed: a second opening gives the address of the first.
std::mutex& openings() {
    static std::mutex& mutex = *new std::mutex;
    return mutex;
}

}  // namespace

extern "C" {

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
    return call(__func__, [&] {
        SharedAllocation allocation = memory().find(pointer);
        if (!handle || !allocation || allocation->kind != Kind::device) return cudaErrorInvalidValue;
        *handle = allocation->backing.handle();
        return cudaSuccess;
    });
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned flags) {
    return call(__func__, [&] {
        if (!pointer || flags != cudaIpcMemLazyEnablePeerAccess) return cudaErrorInvalidValue;
        std::scoped_lock lock(openings());
        bool own = memory().find_if([&](const Allocation& allocation) {
            return allocation.kind == Kind::device && allocation.backing.exported_by_this_process(handle);
        }) != nullptr;
        if (own) return cudaErrorInvalidResourceHandle;

        int opener = current_device().physical();
        SharedAllocation opened = memory().find_if([&](const Allocation& allocation) {
            return allocation.kind == Kind::imported && allocation.opened_by == opener && same(allocation.handle, handle);
        });
        if (opened) {
            opened->openings++;
            *pointer = opened->base;
            return cudaSuccess;
        }
        auto allocation = std::make_shared<Allocation>();
        allocation->kind = Kind::imported;
        allocation->backing = Backing::open(handle, &allocation->device);
        if (!allocation->backing) return cudaErrorInvalidResourceHandle;
        if (allocation->device != opener && !can_access_peer(opener, allocation->device)) return cudaErrorMapBufferObjectFailed;
        allocation->base = allocation->backing.base();
        allocation->size = allocation->backing.size();
        allocation->opened_by = opener;
        allocation->handle = handle;
        *pointer = allocation->base;
        memory().add(std::move(allocation));
        return cudaSuccess;
    });
}

// What the device still does with the memory must not fall into a hole, so it is waited for.
cudaError_t cudaIpcCloseMemHandle(void* pointer) {
    return call(__func__, [&] {
        std::scoped_lock lock(openings());
        SharedAllocation opened = memory().find(pointer);
        if (!opened || opened->kind != Kind::imported || opened->base != pointer) return cudaErrorInvalidValue;
        if (--opened->openings > 0) return cudaSuccess;
        for (int number = 0; number < device_count(); number++) find_device(number)->synchronize();
        memory().bury(memory().remove(pointer, [](const Allocation& allocation) { return allocation.kind == Kind::imported; }));
        return sticky_error();
    });
}

}  // extern "C"
