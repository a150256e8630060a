// From the caller's cudaStream_t to the stream it means.
#pragma once

#include <driver_types.h>

#include "device.h"

namespace standin {

// The default streams are those of the current device. Null if the handle is of no living stream.
SharedStream find_stream(cudaStream_t handle);

}  // namespace standin
