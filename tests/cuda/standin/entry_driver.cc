// The driver's functions, which programs get through cudaGetDriverEntryPointByVersion, for nothing links with libcuda.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "call.h"
#include "memory.h"
#include "settings.h"
#include "stream_handle.h"
#include "twin.h"

using namespace standin;

namespace {

// The codes that both have are equal, as far as the stand-in gives them.
CUresult driver_error(cudaError_t error) {
    return static_cast<CUresult>(error);
}

template <typename Word>
bool holds(Word found, Word wanted, unsigned flags) {
    using Signed = std::make_signed_t<Word>;
    switch (flags & 3u) {
        case CU_STREAM_WAIT_VALUE_EQ:
            return found == wanted;
        case CU_STREAM_WAIT_VALUE_AND:
            return (found & wanted) != 0;
        case CU_STREAM_WAIT_VALUE_NOR:
            return static_cast<Word>(~(found | wanted)) != 0;
        default:
            return static_cast<Signed>(found - wanted) >= 0;  // GEQ, cyclic
    }
}

template <typename Word>
cudaError_t submit(CUstream handle, CUdeviceptr address, bool write, void (*act)(Word*, Word, unsigned), Word value,
                   unsigned flags) {
    SharedStream stream = find_stream(handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    auto* word = reinterpret_cast<Word*>(address);
    if (address % sizeof(Word) != 0 || !memory().find(word)) return cudaErrorInvalidValue;
    int device = stream->device().physical();
    stream->device().submit(*stream, [=] {
        if (!memory().may_touch(device, word, sizeof(Word), write)) return set_sticky_error(cudaErrorIllegalAddress);
        act(word, value, flags);
    });
    return cudaSuccess;
}

// A write carries all that precedes it on its stream, unless the caller forgoes that.
template <typename Word>
void write_word(Word* word, Word value, unsigned flags) {
    if (!(flags & CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)) release(word);
    Memory::Touch touch;
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

// Given up when the device has failed.
template <typename Word>
void await_word(Word* word, Word value, unsigned flags) {
    auto load = [word] {
        Memory::Touch touch;
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);
    };
    while (!holds(load(), value, flags)) {
        if (sticky_error() != cudaSuccess) return;
        standin_pause();
    }
    acquire(word);
}

template <typename Word>
CUresult write_value(const char* entry_point, CUstream stream, CUdeviceptr address, Word value, unsigned flags) {
    return driver_error(call(entry_point, [&] { return submit<Word>(stream, address, true, write_word, value, flags); }));
}

template <typename Word>
CUresult wait_value(const char* entry_point, CUstream stream, CUdeviceptr address, Word value, unsigned flags) {
    return driver_error(call(entry_point, [&] { return submit<Word>(stream, address, false, await_word, value, flags); }));
}

CUresult write_value_32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
    return write_value<cuuint32_t>("cuStreamWriteValue32", stream, address, value, flags);
}

CUresult wait_value_32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
    return wait_value<cuuint32_t>("cuStreamWaitValue32", stream, address, value, flags);
}

CUresult write_value_64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
    return write_value<cuuint64_t>("cuStreamWriteValue64", stream, address, value, flags);
}

CUresult wait_value_64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
    return wait_value<cuuint64_t>("cuStreamWaitValue64", stream, address, value, flags);
}

CUresult get_address_range(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
    return driver_error(call("cuMemGetAddressRange", [&] {
        SharedAllocation allocation = memory().find(reinterpret_cast<void*>(address));
        if (!allocation) return static_cast<cudaError_t>(CUDA_ERROR_NOT_FOUND);
        if (base) *base = reinterpret_cast<CUdeviceptr>(allocation->base);
        if (size) *size = allocation->size;
        return cudaSuccess;
    }));
}

CUresult get_attribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    return driver_error(cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(attribute), device));
}

CUresult get_error_name(CUresult error, const char** name) {
    *name = cudaGetErrorName(static_cast<cudaError_t>(error));
    return CUDA_SUCCESS;
}

CUresult get_error_string(CUresult error, const char** text) {
    *text = cudaGetErrorString(static_cast<cudaError_t>(error));
    return CUDA_SUCCESS;
}

struct Symbol {
    std::string_view name;
    void* function;
    bool of_stream_values;
};

template <typename Function>
Symbol symbol(std::string_view name, Function function, bool of_stream_values = false) {
    return {name, reinterpret_cast<void*>(function), of_stream_values};
}

void* find_symbol(std::string_view name) {
    static const Symbol symbols[] = {
        symbol("cuStreamWriteValue32", write_value_32, true),
        symbol("cuStreamWaitValue32", wait_value_32, true),
        symbol("cuStreamWriteValue64", write_value_64, true),
        symbol("cuStreamWaitValue64", wait_value_64, true),
        symbol("cuMemGetAddressRange", get_address_range),
        symbol("cuDeviceGetAttribute", get_attribute),
        symbol("cuGetErrorName", get_error_name),
        symbol("cuGetErrorString", get_error_string),
    };
    for (const Symbol& candidate : symbols) {
        bool hidden = candidate.of_stream_values && !settings().stream_values;
        if (candidate.name == name && !hidden) return candidate.function;
    }
    return nullptr;
}

}  // namespace

extern "C" {

// Names are those of the driver's documentation; a version picks among the forms that a function has had, of which the stand-in
// knows today's.
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
    return call(__func__, [&] {
        if (!name || !function) return cudaErrorInvalidValue;
        *function = find_symbol(name);
        if (result) *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
        return cudaSuccess;
    });
}

}  // extern "C"
