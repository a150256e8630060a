// Streams.
#include <cuda_runtime_api.h>

#include "call.h"
#include "handles.h"
#include "stream_handle.h"

namespace standin {
namespace {

constexpr int greatest_priority = -5;
constexpr int least_priority = 0;

using Streams = Handles<Stream>;

cudaError_t create(cudaStream_t* handle, unsigned flags, int priority) {
    if (!handle || (flags & ~cudaStreamNonBlocking)) return cudaErrorInvalidValue;
    priority = priority < greatest_priority ? greatest_priority : priority > least_priority ? least_priority : priority;
    *handle = static_cast<cudaStream_t>(Streams::instance().add(current_device().open_stream(flags, priority)));
    return cudaSuccess;
}

}  // namespace

SharedStream find_stream(cudaStream_t handle) {
    if (handle == nullptr || handle == cudaStreamLegacy) return current_device().legacy_stream();
    if (handle == cudaStreamPerThread) return current_device().per_thread_stream();
    return Streams::instance().find(handle);
}

}  // namespace standin

using namespace standin;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    return call(__func__, [&] { return create(stream, cudaStreamDefault, 0); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    return call(__func__, [&] { return create(stream, flags, 0); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
    return call(__func__, [&] { return create(stream, flags, priority); });
}

// What is still on it goes on; nobody waits here.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    return call(__func__, [&] {
        SharedStream stream = Streams::instance().remove(handle);
        if (!stream) return cudaErrorInvalidResourceHandle;
        stream->device().close_stream(stream);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    return with_stream(__func__, handle, [](Stream& stream) {
        if (stream.capturing()) return cudaErrorStreamCaptureUnsupported;
        // Enqueued, for the legacy stream stands for all that it is ordered with.
        if (&stream == stream.device().legacy_stream().get())
            stream.device().submit(stream, nullptr)->wait();
        else if (Work::Shared last = stream.last())
            last->wait();
        return sticky_error();
    });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
    return with_stream(__func__, handle, [](Stream& stream) {
        if (stream.capturing()) return cudaErrorStreamCaptureUnsupported;
        Work::Shared last = stream.last();
        return !last || last->finished() ? sticky_error() : cudaErrorNotReady;
    });
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
    return with_stream(__func__, handle, [&](Stream& stream) {
        *device = stream.device().number();
        return cudaSuccess;
    });
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
    return with_stream(__func__, handle, [&](Stream& stream) {
        *flags = stream.flags();
        return cudaSuccess;
    });
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
    return with_stream(__func__, handle, [&](Stream& stream) {
        *priority = stream.priority();
        return cudaSuccess;
    });
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
    return with_stream(__func__, handle, [&](Stream& stream) {
        *id = stream.id();
        return cudaSuccess;
    });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* argument) {
    return with_stream(__func__, handle, [&](Stream& stream) {
        if (!function) return cudaErrorInvalidValue;
        stream.device().submit(stream, [function, argument] {
            HostFunctionScope scope;
            Seen seen;
            function(argument);
        });
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    return call(__func__, [&] {
        if (least) *least = least_priority;
        if (greatest) *greatest = greatest_priority;
        return cudaSuccess;
    });
}

}  // extern "C"
