// Events.
#include <cuda_runtime_api.h>

#include "call.h"
#include "event.h"
#include "handles.h"
#include "stream_handle.h"

using namespace standin;

namespace {

using Events = Handles<Event>;

cudaError_t create(cudaEvent_t* handle, unsigned flags) {
    constexpr unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    if (!handle || (flags & ~known)) return cudaErrorInvalidValue;
    if ((flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming)) return cudaErrorInvalidValue;
    *handle = static_cast<cudaEvent_t>(Events::instance().add(std::make_shared<Event>(current_device(), flags)));
    return cudaSuccess;
}

cudaError_t record_on(cudaEvent_t event_handle, cudaStream_t stream_handle) {
    auto event = Events::instance().find(event_handle);
    SharedStream stream = find_stream(stream_handle);
    if (!event || !stream || &event->device() != &stream->device()) return cudaErrorInvalidResourceHandle;
    event->set_record(stream->device().submit(*stream, nullptr));
    return cudaSuccess;
}

// An entry point that asks something of an event.
template <typename Body>
cudaError_t with_event(const char* entry_point, cudaEvent_t handle, Body body) {
    return call(entry_point, [&] {
        auto event = Events::instance().find(handle);
        return event ? body(*event) : cudaErrorInvalidResourceHandle;
    });
}

}  // namespace

extern "C" {

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    return call(__func__, [&] { return create(event, cudaEventDefault); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    return call(__func__, [&] { return create(event, flags); });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return call(__func__, [&] { return record_on(event, stream); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
    return call(__func__, [&] { return flags & ~cudaEventRecordExternal ? cudaErrorInvalidValue : record_on(event, stream); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t event_handle, unsigned) {
    return with_event(__func__, event_handle, [&](Event& event) {
        SharedStream stream = find_stream(stream_handle);
        if (!stream) return cudaErrorInvalidResourceHandle;
        if (Work::Shared record = event.record()) stream->device().submit(*stream, nullptr, {record});
        return cudaSuccess;
    });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
    return with_event(__func__, handle, [](Event& event) {
        Work::Shared record = event.record();
        return !record || record->finished() ? sticky_error() : cudaErrorNotReady;
    });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    return with_event(__func__, handle, [](Event& event) {
        if (Work::Shared record = event.record()) record->wait();
        return sticky_error();
    });
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    return call(__func__, [&] { return Events::instance().remove(handle) ? cudaSuccess : cudaErrorInvalidResourceHandle; });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start_handle, cudaEvent_t end_handle) {
    return with_event(__func__, start_handle, [&](Event& start) {
        auto end = Events::instance().find(end_handle);
        if (!end || ((start.flags() | end->flags()) & cudaEventDisableTiming)) return cudaErrorInvalidResourceHandle;
        Work::Shared from = start.record(), to = end->record();
        if (!from || !to) return cudaErrorInvalidResourceHandle;
        if (!from->finished() || !to->finished()) return cudaErrorNotReady;
        *milliseconds = std::chrono::duration<float, std::milli>(to->finish_time() - from->finish_time()).count();
        return cudaSuccess;
    });
}

}  // extern "C"
