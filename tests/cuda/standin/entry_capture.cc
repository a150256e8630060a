// Capture of streams into graphs, as far as a program must know whether it goes on. Graphs are not modelled: what is enqueued
// meanwhile runs at once, and the graph at the end is null.
#include <cuda_runtime_api.h>

#include "stream_handle.h"

using namespace standin;

namespace {

cudaStreamCaptureStatus status_of(const Stream& stream) {
    return stream.capturing() ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
    return with_stream(__func__, handle, [&](Stream& stream) {
        if (&stream == stream.device().legacy_stream().get()) return cudaErrorStreamCaptureUnsupported;
        if (stream.capturing()) return cudaErrorIllegalState;
        stream.set_capturing(true);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
    return with_stream(__func__, handle, [&](Stream& stream) {
        if (!stream.capturing()) return cudaErrorIllegalState;
        stream.set_capturing(false);
        *graph = nullptr;
        return cudaSuccess;
    });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
    return with_stream(__func__, handle, [&](Stream& stream) {
        *status = status_of(stream);
        return cudaSuccess;
    });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
                                     size_t* dependency_count) {
    return with_stream(__func__, handle, [&](Stream& stream) {
        *status = status_of(stream);
        if (id) *id = stream.capturing() ? stream.id() : 0;
        if (graph) *graph = nullptr;
        if (dependencies) *dependencies = nullptr;
        if (edges) *edges = nullptr;
        if (dependency_count) *dependency_count = 0;
        return cudaSuccess;
    });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
    static thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
    return call(__func__, [&] {
        std::swap(*mode, current);
        return cudaSuccess;
    });
}

}  // extern "C"
