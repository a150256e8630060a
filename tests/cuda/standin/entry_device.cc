// Devices, and which of them may touch the memory of which.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "call.h"
#include "device.h"
#include "memory.h"
#include "settings.h"

using namespace standin;

namespace {

// An H100, in what programs ask about.
constexpr int compute_major = 9, compute_minor = 0, multiprocessors = 132;
constexpr int first_bus = 0x10;

int attribute(cudaDeviceAttr attribute, const Device& device, bool* known) {
    *known = true;
    switch (static_cast<int>(attribute)) {
        case cudaDevAttrMaxThreadsPerBlock:
            return 1024;
        case cudaDevAttrMaxBlockDimX:
            return 1024;
        case cudaDevAttrMaxBlockDimY:
            return 1024;
        case cudaDevAttrMaxBlockDimZ:
            return 64;
        case cudaDevAttrMaxGridDimX:
            return 2147483647;
        case cudaDevAttrMaxGridDimY:
            return 65535;
        case cudaDevAttrMaxGridDimZ:
            return 65535;
        case cudaDevAttrMaxSharedMemoryPerBlock:
            return 48 << 10;
        case cudaDevAttrWarpSize:
            return 32;
        case cudaDevAttrMultiProcessorCount:
            return multiprocessors;
        case cudaDevAttrMaxThreadsPerMultiProcessor:
            return 2048;
        case cudaDevAttrComputeCapabilityMajor:
            return compute_major;
        case cudaDevAttrComputeCapabilityMinor:
            return compute_minor;
        case cudaDevAttrPciBusId:
            return first_bus + device.physical();
        case cudaDevAttrPciDeviceId:
            return 0;
        case cudaDevAttrPciDomainId:
            return 0;
        case cudaDevAttrConcurrentKernels:
            return 1;
        case cudaDevAttrAsyncEngineCount:
            return 3;
        case cudaDevAttrUnifiedAddressing:
            return 1;
        case cudaDevAttrCanMapHostMemory:
            return 1;
        case cudaDevAttrStreamPrioritiesSupported:
            return 1;
        case cudaDevAttrHostRegisterSupported:
            return 1;
        case cudaDevAttrHostRegisterReadOnlySupported:
            return 1;
        case cudaDevAttrCanUseHostPointerForRegisteredMem:
            return 1;
        case cudaDevAttrMemoryPoolsSupported:
            return 1;
        case cudaDevAttrIpcEventSupport:
            return 1;
        case cudaDevAttrManagedMemory:
            return 0;
        case cudaDevAttrPageableMemoryAccess:
            return 0;
        case cudaDevAttrComputeMode:
            return cudaComputeModeDefault;
        case cudaDevAttrCooperativeLaunch:
            return 0;
        case cudaDevAttrIntegrated:
            return 0;
        // Stream memory operations, in the first and in today's form: 32 bits, 64 bits, NOR.
        case 92:
        case 93:
        case 94:
        case 122:
        case 123:
            return settings().stream_values;
        default:
            *known = false;
            return 0;
    }
}

void describe(const Device& device, cudaDeviceProp* properties) {
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "stand-in GPU %d", device.physical());
    std::memset(properties->uuid.bytes, 0x5a, sizeof properties->uuid.bytes);
    properties->uuid.bytes[0] = static_cast<char>(device.physical());
    properties->totalGlobalMem = settings().memory;
    auto get = [&](cudaDeviceAttr wanted) {
        bool known;
        return attribute(wanted, device, &known);
    };
    properties->sharedMemPerBlock = static_cast<size_t>(get(cudaDevAttrMaxSharedMemoryPerBlock));
    properties->warpSize = get(cudaDevAttrWarpSize);
    properties->maxThreadsPerBlock = get(cudaDevAttrMaxThreadsPerBlock);
    properties->maxThreadsDim[0] = get(cudaDevAttrMaxBlockDimX);
    properties->maxThreadsDim[1] = get(cudaDevAttrMaxBlockDimY);
    properties->maxThreadsDim[2] = get(cudaDevAttrMaxBlockDimZ);
    properties->maxGridSize[0] = get(cudaDevAttrMaxGridDimX);
    properties->maxGridSize[1] = get(cudaDevAttrMaxGridDimY);
    properties->maxGridSize[2] = get(cudaDevAttrMaxGridDimZ);
    properties->major = compute_major;
    properties->minor = compute_minor;
    properties->multiProcessorCount = multiprocessors;
    properties->maxThreadsPerMultiProcessor = get(cudaDevAttrMaxThreadsPerMultiProcessor);
    properties->pciBusID = get(cudaDevAttrPciBusId);
    properties->concurrentKernels = 1;
    properties->asyncEngineCount = get(cudaDevAttrAsyncEngineCount);
    properties->unifiedAddressing = 1;
    properties->canMapHostMemory = 1;
    properties->streamPrioritiesSupported = 1;
    properties->hostRegisterSupported = 1;
    properties->hostRegisterReadOnlySupported = 1;
    properties->canUseHostPointerForRegisteredMem = 1;
    properties->memoryPoolsSupported = 1;
    properties->ipcEventSupported = 1;
}

// An entry point that asks something of a device.
template <typename Body>
cudaError_t with_device(const char* entry_point, int number, Body body) {
    return call(entry_point, [&] {
        Device* device = find_device(number);
        return device ? body(*device) : cudaErrorInvalidDevice;
    });
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
    if (count) *count = 0;
    return call(__func__, [&] {
        *count = device_count();
        return cudaSuccess;
    });
}

cudaError_t cudaGetDevice(int* device) {
    return call(__func__, [&] {
        *device = current_device().number();
        return cudaSuccess;
    });
}

cudaError_t cudaSetDevice(int number) {
    return with_device(__func__, number, [&](Device&) {
        set_current_device(number);
        return cudaSuccess;
    });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int number) {
    return with_device(__func__, number, [&](Device& device) {
        describe(device, properties);
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr wanted, int number) {
    return with_device(__func__, number, [&](Device& device) {
        bool known;
        *value = attribute(wanted, device, &known);
        return known ? cudaSuccess : cudaErrorInvalidValue;
    });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int number) {
    return with_device(__func__, number, [&](Device& device) {
        if (!text || length < 13) return cudaErrorInvalidValue;
        std::snprintf(text, static_cast<size_t>(length), "0000:%02X:00.0",
                      static_cast<unsigned>(first_bus + device.physical()));
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetByPCIBusId(int* number, const char* text) {
    return call(__func__, [&] {
        unsigned domain = 0, bus = 0;
        if (!text || std::sscanf(text, "%x:%x", &domain, &bus) != 2) return cudaErrorInvalidValue;
        for (int candidate = 0; candidate < device_count(); candidate++) {
            if (domain != 0 || static_cast<int>(bus) != first_bus + find_device(candidate)->physical()) continue;
            *number = candidate;
            return cudaSuccess;
        }
        return cudaErrorInvalidDevice;
    });
}

cudaError_t cudaDeviceCanAccessPeer(int* answer, int number, int peer_number) {
    return with_device(__func__, number, [&](Device& device) {
        Device* peer = find_device(peer_number);
        if (!peer) return cudaErrorInvalidDevice;
        *answer = can_access_peer(device.physical(), peer->physical());
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr wanted, int number, int peer_number) {
    return with_device(__func__, number, [&](Device& device) {
        Device* peer = find_device(peer_number);
        if (!peer || peer == &device) return cudaErrorInvalidDevice;
        bool can = can_access_peer(device.physical(), peer->physical());
        switch (wanted) {
            case cudaDevP2PAttrPerformanceRank:
                *value = 0;
                return cudaSuccess;
            case cudaDevP2PAttrAccessSupported:
                *value = can;
                return cudaSuccess;
            case cudaDevP2PAttrNativeAtomicSupported:
                *value = can;
                return cudaSuccess;
            default:
                *value = 0;
                return cudaSuccess;
        }
    });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer_number, unsigned flags) {
    return with_device(__func__, peer_number, [&](Device& peer) {
        if (flags != 0) return cudaErrorInvalidValue;
        int device = current_device().physical();
        if (!can_access_peer(device, peer.physical())) return cudaErrorInvalidDevice;
        return set_peer_access(device, peer.physical(), true) ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
    });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer_number) {
    return with_device(__func__, peer_number, [&](Device& peer) {
        bool was = set_peer_access(current_device().physical(), peer.physical(), false);
        return was ? cudaSuccess : cudaErrorPeerAccessNotEnabled;
    });
}

cudaError_t cudaDeviceSynchronize() {
    return call(__func__, [&] {
        current_device().synchronize();
        return sticky_error();
    });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
    return call(__func__, [&] {
        *total = settings().memory;
        *free = *total - std::min(*total, memory().used(current_device().physical()));
        return cudaSuccess;
    });
}

}  // extern "C"
