// What every function of the C API does on its way in and out.
#pragma once

#include <new>

#include "api/handles.h"
#include "communicator/communicator.h"
#include "communicator/stream.h"

namespace ringccl {

HandleTable<Communicator>& communicators();
HandleTable<Stream>& streams();

using CommPin = HandleTable<Communicator>::Pin;

// The communicator behind a handle. ringInvalidUsage: not alive, or made by the process that forked this one.
Result<CommPin> find_communicator(ringComm_t handle, const char* caller);
// The same for whatever needs links: also completely made.
Result<CommPin> find_made(ringComm_t handle, const char* caller);
// The same for work: also not finalized.
Result<CommPin> find_working(ringComm_t handle, const char* caller);

// Makes a communicator. *comm is set before others are waited for, and set back on failure.
Status make_communicator(const ringUniqueId& id, int rank, int size, const Settings& settings, ringComm_t* comm);

// Remembers the failure for ringGetLastError(NULL) of this thread and returns its code. Does not throw, even if there is no
// memory left for the text.
ringResult_t report(const Status& status) noexcept;
ringResult_t report_no_memory() noexcept;

// Runs the body of an API function: no exception leaves the library.
template <class Body>
ringResult_t entry(const char* name, Body&& body) noexcept {
    try {
        return report(body());
    } catch (const std::bad_alloc&) {
        return report_no_memory();
    } catch (const std::exception& problem) {
        try {
            return report(failure(ringInternalError, "{}: {}", name, problem.what()));
        } catch (...) {
            return report_no_memory();
        }
    }
}

}  // namespace ringccl
