// Kernels, and the order of streams and events.
#include <cuda.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "device_array.h"
#include "kernels.h"
#include "scenario.h"

using namespace selftest;

namespace {

constexpr size_t count = 1000;

// A gate on a stream: what comes behind it stands until it is opened.
struct Gate {
    uint32_t* word = pinned_array<uint32_t>(1);
    void close(cudaStream_t stream) const { launch_await(word, 1, stream); }
    void open() const { std::atomic_ref(*word).store(1, std::memory_order_release); }
};

bool all_equal(const float* values, float wanted) {
    for (size_t i = 0; i < count; i++)
        if (values[i] != wanted) return false;
    return true;
}

// One stream makes values, another doubles them behind an event, or, with no event, whenever it likes.
bool pipeline(bool with_wait, int rounds) {
    auto* values = device_array<float>(count);
    auto* doubled = device_array<float>(count);
    auto* source = pinned_array<float>(count);
    auto* result = pinned_array<float>(count);
    cudaStream_t maker = new_stream(), doubler = new_stream();
    cudaEvent_t made = new_event();
    for (int round = 1; round <= rounds; round++) {
        for (size_t i = 0; i < count; i++) source[i] = static_cast<float>(round);
        NEED_OK(cudaMemcpyAsync(values, source, count * sizeof(float), cudaMemcpyHostToDevice, maker));
        NEED_OK(cudaEventRecord(made, maker));
        if (with_wait) NEED_OK(cudaStreamWaitEvent(doubler, made, 0));
        launch_add(values, values, doubled, count, doubler);
        NEED_OK(cudaMemcpyAsync(result, doubled, count * sizeof(float), cudaMemcpyDeviceToHost, doubler));
        NEED_OK(cudaStreamSynchronize(doubler));
        NEED(all_equal(result, 2.0F * static_cast<float>(round)));
        NEED_OK(cudaStreamSynchronize(maker));
    }
    return true;
}

}  // namespace

SCENARIO(kernels) {
    auto *a = device_array<float>(count), *sum = device_array<float>(count);
    auto* numbers = device_array<int>(count);
    auto* host = pinned_array<float>(count, 1.5F);
    auto* host_numbers = pinned_array<int>(count, 7);
    NEED_OK(cudaMemcpy(a, host, count * sizeof(float), cudaMemcpyHostToDevice));
    NEED_OK(cudaMemcpy(numbers, host_numbers, count * sizeof(int), cudaMemcpyDefault));
    launch_add(a, a, sum, count, nullptr);
    launch_scale(sum, count, 10.0F, nullptr);
    launch_scale(numbers, count, 6, nullptr);
    NEED_OK(cudaGetLastError());
    NEED_OK(cudaMemcpy(host, sum, count * sizeof(float), cudaMemcpyDeviceToHost));
    NEED_OK(cudaMemcpy(host_numbers, numbers, count * sizeof(int), cudaMemcpyDefault));
    for (size_t i = 0; i < count; i++) NEED(host[i] == 30.0F && host_numbers[i] == 42);
    return true;
}

SCENARIO(right_order) {
    return pipeline(true, 3);
}

SCENARIO(missing_wait) {
    return pipeline(false, 10);
}

// An event covers what was on the stream when it was recorded, and nothing later; a second record leaves the first wait alone.
SCENARIO(event_captures) {
    cudaStream_t worker = new_stream(), waiter = new_stream();
    cudaEvent_t event = new_event();
    Gate first, second;
    first.close(worker);
    NEED_OK(cudaEventRecord(event, worker));
    second.close(worker);
    NEED_OK(cudaStreamWaitEvent(waiter, event, 0));
    NEED(cudaEventQuery(event) == cudaErrorNotReady);
    NEED(cudaStreamQuery(waiter) == cudaErrorNotReady);
    NEED_OK(cudaEventRecord(event, worker));
    first.open();
    NEED_OK(cudaStreamSynchronize(waiter));
    NEED(cudaEventQuery(event) == cudaErrorNotReady);
    second.open();
    NEED_OK(cudaEventSynchronize(event));
    NEED_OK(cudaEventQuery(event));
    return true;
}

SCENARIO(elapsed_time) {
    cudaEvent_t start = new_event(cudaEventDefault), end = new_event(cudaEventDefault);
    cudaStream_t stream = new_stream();
    float milliseconds = -1;
    NEED(cudaEventElapsedTime(&milliseconds, start, end) == cudaErrorInvalidResourceHandle);
    NEED_OK(cudaEventRecord(start, stream));
    NEED_OK(cudaLaunchHostFunc(
        stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }, nullptr));
    NEED_OK(cudaEventRecord(end, stream));
    NEED_OK(cudaEventSynchronize(end));
    NEED_OK(cudaEventElapsedTime(&milliseconds, start, end));
    NEED(milliseconds >= 5);
    return true;
}

// The legacy stream and the blocking ones wait for each other; the others do not care.
SCENARIO(legacy_stream) {
    cudaStream_t blocking = new_stream(cudaStreamDefault), aloof = new_stream();
    Gate gate;
    gate.close(blocking);
    cudaEvent_t event = new_event();
    NEED_OK(cudaEventRecord(event, nullptr));
    cudaStream_t later = new_stream(cudaStreamDefault);
    auto* words = device_array<int>(3);
    NEED_OK(cudaMemsetAsync(words, 0, sizeof *words, later));
    NEED_OK(cudaMemsetAsync(words + 1, 0, sizeof *words, cudaStreamPerThread));
    NEED_OK(cudaMemsetAsync(words + 2, 0, sizeof *words, aloof));
    NEED_OK(cudaStreamSynchronize(aloof));
    NEED(cudaEventQuery(event) == cudaErrorNotReady);
    NEED(cudaStreamQuery(later) == cudaErrorNotReady);
    NEED(cudaStreamQuery(cudaStreamPerThread) == cudaErrorNotReady);
    gate.open();
    NEED_OK(cudaStreamSynchronize(later));
    NEED_OK(cudaEventQuery(event));
    NEED_OK(cudaDeviceSynchronize());
    return true;
}

SCENARIO(stream_values) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    NEED_OK(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &found, 13000, cudaEnableDefault, &result));
    NEED(result == cudaDriverEntryPointSuccess && found);
    auto wait = reinterpret_cast<decltype(&cuStreamWaitValue32)>(found);
    NEED_OK(cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &found, 13000, cudaEnableDefault, &result));
    auto write = reinterpret_cast<decltype(&cuStreamWriteValue32)>(found);
    NEED(found);

    cudaStream_t waiter = new_stream(), other = new_stream();
    auto* word = pinned_array<uint32_t>(1);
    auto address = reinterpret_cast<CUdeviceptr>(word);
    NEED(wait(waiter, address, 2, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS);
    NEED(write(other, address, 1, CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS);
    NEED_OK(cudaStreamSynchronize(other));
    NEED(*word == 1 && cudaStreamQuery(waiter) == cudaErrorNotReady);
    NEED(write(other, address, 3, CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS);
    NEED_OK(cudaStreamSynchronize(waiter));
    int on_stack = 0;
    NEED(wait(waiter, reinterpret_cast<CUdeviceptr>(&on_stack), 0, CU_STREAM_WAIT_VALUE_EQ) == CUDA_ERROR_INVALID_VALUE);
    return true;
}

SCENARIO(no_stream_values) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    NEED_OK(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &found, 13000, cudaEnableDefault, &result));
    NEED(result == cudaDriverEntryPointSymbolNotFound && !found);
    return true;
}

// In a host function the runtime must not be called.
SCENARIO(host_function) {
    static cudaError_t inside = cudaSuccess;
    cudaStream_t stream = new_stream();
    NEED_OK(cudaLaunchHostFunc(
        stream, [](void* argument) { inside = cudaFree(argument); }, nullptr));
    NEED_OK(cudaStreamSynchronize(stream));
    NEED(inside == cudaErrorNotPermitted);
    return true;
}

// Graphs are not modelled, but a program that asks whether a stream captures is told.
SCENARIO(capture) {
    cudaStream_t stream = new_stream();
    cudaStreamCaptureStatus status;
    NEED_OK(cudaStreamIsCapturing(stream, &status));
    NEED(status == cudaStreamCaptureStatusNone);
    NEED_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    NEED_OK(cudaStreamIsCapturing(stream, &status));
    NEED(status == cudaStreamCaptureStatusActive);
    unsigned long long id = 0;
    NEED_OK(cudaStreamGetCaptureInfo(stream, &status, &id));
    NEED(status == cudaStreamCaptureStatusActive && id != 0);
    NEED(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
    cudaGraph_t graph;
    NEED_OK(cudaStreamEndCapture(stream, &graph));
    NEED_OK(cudaStreamSynchronize(stream));
    return true;
}
