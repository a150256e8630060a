// Errors and versions: what works without a device, and after it has failed.
#include <cuda_runtime_api.h>

#include <array>

#include "call.h"

using namespace standin;

namespace {

struct Text {
    cudaError_t error;
    const char* name;
    const char* text;
};

// Those that the stand-in gives, and that ringccl has a word about.
constexpr std::array texts{
    Text{cudaSuccess, "cudaSuccess", "no error"},
    Text{cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    Text{cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    Text{cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    Text{cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    Text{cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    Text{cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    Text{cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    Text{cudaErrorMapBufferObjectFailed, "cudaErrorMapBufferObjectFailed", "mapping of buffer object failed"},
    Text{cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    Text{cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound", "named symbol not found"},
    Text{cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    Text{cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    Text{cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    Text{cudaErrorPeerAccessNotEnabled, "cudaErrorPeerAccessNotEnabled", "peer access has not been enabled"},
    Text{cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
         "part or all of the requested memory range is already mapped"},
    Text{cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
         "pointer does not correspond to a registered memory region"},
    Text{cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    Text{cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    Text{cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
         "operation not permitted when stream is capturing"},
    Text{cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const Text* find(cudaError_t error) {
    for (const Text& text : texts)
        if (text.error == error) return &text;
    return nullptr;
}

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
    const Text* text = find(error);
    return text ? text->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
    const Text* text = find(error);
    return text ? text->text : "unrecognized error code";
}

cudaError_t cudaGetLastError() {
    Hidden hidden;
    count(__func__);
    cudaError_t error = last_error();
    forget_last_error();
    return error;
}

cudaError_t cudaPeekAtLastError() {
    Hidden hidden;
    count(__func__);
    return last_error();
}

cudaError_t cudaDriverGetVersion(int* version) {
    Hidden hidden;
    count(__func__);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
    Hidden hidden;
    count(__func__);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

}  // extern "C"
