// From the caller's cudaStream_t to the stream it means.
#pragma once

#include <driver_types.h>

#include "call.h"
#include "device.h"

namespace standin {

// The default streams are those of the current device. Null if the handle is of no living stream.
SharedStream find_stream(cudaStream_t handle);

// An entry point that asks something of a stream.
template <typename Body>
cudaError_t with_stream(const char* entry_point, cudaStream_t handle, Body body) {
    return call(entry_point, [&] {
        SharedStream stream = find_stream(handle);
        return stream ? body(*stream) : cudaErrorInvalidResourceHandle;
    });
}

}  // namespace standin
