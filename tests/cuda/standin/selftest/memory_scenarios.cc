// Memory: what pointers are, who may touch what, IPC, and the faults that the environment asks for.
#include <cuda.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "../twin.h"
#include "device_array.h"
#include "kernels.h"
#include "scenario.h"

using namespace selftest;

namespace {

constexpr size_t count = 1000;
constexpr size_t bytes = count * sizeof(float);

bool is(const void* pointer, cudaMemoryType type, int device) {
    cudaPointerAttributes attributes;
    return cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess && attributes.type == type &&
           attributes.device == device;
}

// Error 700, and again from whatever is called.
bool stays_broken() {
    NEED(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    void* memory;
    NEED(cudaMalloc(&memory, 1) == cudaErrorIllegalAddress);
    NEED(cudaGetLastError() == cudaErrorIllegalAddress && cudaGetLastError() == cudaErrorIllegalAddress);
    return true;
}

}  // namespace

SCENARIO(pointers) {
    std::vector<float> pageable(count);
    auto* device = device_array<float>(count);
    auto* pinned = pinned_array<float>(count);
    NEED(is(device, cudaMemoryTypeDevice, 0) && is(device + count - 1, cudaMemoryTypeDevice, 0));
    NEED(is(device + count, cudaMemoryTypeUnregistered, cudaInvalidDeviceId));
    NEED(is(pinned, cudaMemoryTypeHost, 0));
    NEED(is(pageable.data(), cudaMemoryTypeUnregistered, cudaInvalidDeviceId));
    NEED_OK(cudaHostRegister(pageable.data(), bytes, cudaHostRegisterReadOnly));
    NEED(is(pageable.data() + 1, cudaMemoryTypeHost, 0));
    NEED(cudaHostRegister(pageable.data() + 1, 4, 0) == cudaErrorHostMemoryAlreadyRegistered);
    NEED_OK(cudaHostUnregister(pageable.data()));
    NEED(cudaHostUnregister(pageable.data()) == cudaErrorHostMemoryNotRegistered);
    NEED_OK(cudaFree(device));
    NEED(cudaFree(device) == cudaErrorInvalidValue);
    return true;
}

SCENARIO(many_devices) {
    int devices = 0, can = 0;
    NEED_OK(cudaGetDeviceCount(&devices));
    NEED(devices == 2 && cudaSetDevice(2) == cudaErrorInvalidDevice);
    NEED_OK(cudaDeviceCanAccessPeer(&can, 0, 1));
    NEED(can == 1);
    NEED_OK(cudaSetDevice(1));
    auto* there = device_array<float>(count);
    NEED(is(there, cudaMemoryTypeDevice, 1));
    NEED_OK(cudaSetDevice(0));
    NEED_OK(cudaDeviceEnablePeerAccess(1, 0));
    NEED(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
    launch_scale(there, count, 2.0F, nullptr);
    NEED_OK(cudaDeviceSynchronize());
    char id[2][16];
    NEED_OK(cudaDeviceGetPCIBusId(id[0], sizeof id[0], 0));
    NEED_OK(cudaDeviceGetPCIBusId(id[1], sizeof id[1], 1));
    NEED(std::strcmp(id[0], id[1]) != 0);
    return true;
}

SCENARIO(no_devices) {
    int devices = -1;
    NEED(cudaGetDeviceCount(&devices) == cudaErrorNoDevice && devices == 0);
    return true;
}

SCENARIO(no_peer_access_in_kernel) {
    NEED_OK(cudaSetDevice(1));
    auto* there = device_array<float>(count);
    NEED_OK(cudaSetDevice(0));
    launch_scale(there, count, 2.0F, nullptr);  // the pointer lies in a struct
    return stays_broken();
}

SCENARIO(no_peer_access_in_copy) {
    NEED_OK(cudaSetDevice(1));
    auto* there = device_array<float>(count);
    NEED_OK(cudaSetDevice(0));
    NEED_OK(cudaMemcpyPeer(device_array<float>(count), 0, there, 1, bytes));  // which needs none
    NEED_OK(cudaDeviceSynchronize());
    NEED_OK(cudaMemcpyAsync(device_array<float>(count), there, bytes, cudaMemcpyDeviceToDevice, nullptr));
    return stays_broken();
}

SCENARIO(out_of_range) {
    auto* device = device_array<float>(count);
    NEED_OK(cudaMemsetAsync(device + 1, 0, bytes, nullptr));
    return stays_broken();
}

SCENARIO(use_after_free) {
    auto* device = device_array<float>(count);
    NEED_OK(cudaFree(device));
    launch_scale(device, count, 2.0F, nullptr);
    return stays_broken();
}

SCENARIO(read_only) {
    static float host[count];
    NEED_OK(cudaHostRegister(host, bytes, cudaHostRegisterReadOnly));
    auto* device = device_array<float>(count);
    NEED_OK(cudaMemcpy(device, host, bytes, cudaMemcpyDefault));
    NEED_OK(cudaDeviceSynchronize());
    NEED(cudaMemcpy(host, device, bytes, cudaMemcpyDefault) == cudaErrorIllegalAddress);
    return stays_broken();
}

// The host must not touch a device's memory: a child dies of it. (It never calls CUDA, so it may be a fork.)
static bool dies_touching(volatile float* memory) {
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);  // a sanitizer would report it
        *memory = 1.0F;
        _exit(0);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

SCENARIO(host_touch) {
    auto* device = device_array<float>(count);
    NEED(dies_touching(device));
    launch_scale(device, count, 2.0F, nullptr);
    NEED_OK(cudaDeviceSynchronize());
    NEED(dies_touching(device + count - 1));
    NEED(!dies_touching(pinned_array<float>(count)));
    return true;
}

SCENARIO(host_touch_unseen) {
    return !dies_touching(device_array<float>(count));
}

// A pageable source is read before the call returns, a pageable destination is written.
SCENARIO(pageable_copies) {
    std::vector<float> host(count, 3.0F);
    auto* device = device_array<float>(count);
    cudaStream_t stream = new_stream();
    NEED_OK(cudaMemcpyAsync(device, host.data(), bytes, cudaMemcpyHostToDevice, stream));
    std::memset(host.data(), 0, bytes);
    NEED_OK(cudaMemcpyAsync(host.data(), device, bytes, cudaMemcpyDeviceToHost, stream));
    for (float value : host) NEED(value == 3.0F);
    NEED(cudaMemcpyAsync(host.data(), device, bytes, cudaMemcpyDeviceToDevice, stream) == cudaErrorInvalidValue);
    return true;
}

// The parent exports from within an allocation, the child writes there. The fork comes before either uses CUDA.
SCENARIO(ipc) {
    int to_child[2], to_parent[2];
    NEED(pipe(to_child) == 0 && pipe(to_parent) == 0);
    struct Offer {
        cudaIpcMemHandle_t handle;
        size_t offset;
    } offer{};
    pid_t child = fork();
    if (child == 0) {
        auto work = [&]() -> bool {
            NEED(read(to_child[0], &offer, sizeof offer) == sizeof offer);
            void *base = nullptr, *again = nullptr;
            NEED_OK(cudaIpcOpenMemHandle(&base, offer.handle, cudaIpcMemLazyEnablePeerAccess));
            NEED_OK(cudaIpcOpenMemHandle(&again, offer.handle, cudaIpcMemLazyEnablePeerAccess));
            NEED(base == again && is(base, cudaMemoryTypeDevice, 0));
            launch_scale(reinterpret_cast<int*>(static_cast<char*>(base) + offer.offset), 1, 6, nullptr);
            NEED_OK(cudaDeviceSynchronize());
            NEED_OK(cudaIpcCloseMemHandle(base));
            NEED_OK(cudaIpcCloseMemHandle(base));
            NEED(cudaIpcCloseMemHandle(base) == cudaErrorInvalidValue);
            char done = 1;
            NEED(write(to_parent[1], &done, 1) == 1 && read(to_child[0], &done, 1) == 1);  // the parent has freed it
            NEED(cudaIpcOpenMemHandle(&base, offer.handle, cudaIpcMemLazyEnablePeerAccess) == cudaErrorInvalidResourceHandle);
            return true;
        };
        _exit(work() ? 0 : 1);
    }
    auto* device = device_array<int>(count);
    int value = 7;
    NEED_OK(cudaMemcpy(device + 10, &value, sizeof value, cudaMemcpyHostToDevice));
    NEED_OK(cudaDeviceSynchronize());
    NEED_OK(cudaIpcGetMemHandle(&offer.handle, device + 10));
    offer.offset = 10 * sizeof(int);
    void* own;
    NEED(cudaIpcOpenMemHandle(&own, offer.handle, cudaIpcMemLazyEnablePeerAccess) == cudaErrorInvalidResourceHandle);
    NEED(write(to_child[1], &offer, sizeof offer) == sizeof offer);
    char done;
    NEED(read(to_parent[0], &done, 1) == 1);
    NEED_OK(cudaMemcpy(&value, device + 10, sizeof value, cudaMemcpyDeviceToHost));
    NEED(value == 42);
    NEED_OK(cudaFree(device));
    NEED(write(to_child[1], &done, 1) == 1);
    int status = 1;
    NEED(waitpid(child, &status, 0) == child && status == 0);
    return true;
}

SCENARIO(use_after_fork) {
    NEED_OK(cudaDeviceSynchronize());
    pid_t child = fork();
    if (child == 0) _exit(cudaDeviceSynchronize() == cudaErrorInitializationError ? 0 : 1);
    int status = 1;
    NEED(waitpid(child, &status, 0) == child && status == 0);
    return true;
}

// Memory of a pool is not exported.
SCENARIO(pools) {
    void* memory = nullptr;
    cudaStream_t stream = new_stream();
    NEED_OK(cudaMallocAsync(&memory, bytes, stream));
    NEED_OK(cudaMemsetAsync(memory, 0, bytes, stream));
    cudaIpcMemHandle_t handle;
    NEED(cudaIpcGetMemHandle(&handle, memory) == cudaErrorInvalidValue);
    NEED_OK(cudaFreeAsync(memory, stream));
    NEED_OK(cudaStreamSynchronize(stream));
    NEED(is(memory, cudaMemoryTypeUnregistered, cudaInvalidDeviceId));
    return true;
}

SCENARIO(counters) {
    NEED(standin_count("cudaMalloc") == 0);
    device_array<float>(count);
    device_array<float>(count);
    NEED(standin_count("cudaMalloc") == 2 && standin_count("cudaFree") == 0);
    return true;
}

// With STANDIN_FAIL=cudaMalloc:2,cudaStreamQuery:1.
SCENARIO(injected_failures) {
    NEED(device_array<float>(count) && !device_array<float>(count));
    NEED(cudaGetLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaSuccess);
    NEED(device_array<float>(count));
    NEED(cudaStreamQuery(nullptr) == cudaErrorUnknown && cudaStreamQuery(nullptr) == cudaSuccess);
    return true;
}

// With STANDIN_FAIL_LAUNCH=2.
SCENARIO(injected_launch_failure) {
    auto* device = device_array<float>(count);
    launch_scale(device, count, 2.0F, nullptr);
    NEED_OK(cudaDeviceSynchronize());
    launch_scale(device, count, 2.0F, nullptr);
    return stays_broken();
}
