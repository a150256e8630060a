#include <atomic>
#include <string>

#include "api/entry.h"
#include "communicator/fabric.h"
#include "communicator/report.h"
#include "device/cuda_module.h"
#include "device/host_device.h"

namespace ringccl {
namespace {

constexpr const char* kNoMemory = "out of memory";

thread_local std::string last_error;
thread_local bool no_memory = false;  // the last error, where there was none left to describe it

}  // namespace

// Neither table is ever destroyed: other threads may still be in calls while the program's statics go away.
HandleTable<Communicator>& communicators() {
    static auto* table = new HandleTable<Communicator>;
    return *table;
}

HandleTable<Stream>& streams() {
    static auto* table = new HandleTable<Stream>;
    return *table;
}

Result<CommPin> find_communicator(ringComm_t handle, const char* caller) {
    CommPin pin = communicators().find(reinterpret_cast<uint64_t>(handle));
    if (!pin) {
        return failure(ringInvalidUsage, "{}: {} is not a living communicator (NULL, destroyed before, or never made)", caller,
                       static_cast<void*>(handle));
    }
    if (!pin->in_own_process()) {
        return failure(ringInvalidUsage,
                       "{}: the communicator belongs to the process that forked this one; make a new one here", caller);
    }
    return pin;
}

Result<CommPin> find_made(ringComm_t handle, const char* caller) {
    RINGCCL_ASSIGN(CommPin pin, find_communicator(handle, caller));
    if (!pin->made()) return failure(ringInvalidUsage, "{}: the communicator is still being made", caller);
    return pin;
}

Result<CommPin> find_working(ringComm_t handle, const char* caller) {
    RINGCCL_ASSIGN(CommPin pin, find_made(handle, caller));
    if (pin->finalized()) return failure(ringInvalidUsage, "{}: the communicator has been finalized", caller);
    return pin;
}

namespace {

Result<std::shared_ptr<Device>> open_device(const Settings& settings) {
    if (settings.cuda_device < 0) return std::shared_ptr<Device>(std::make_shared<HostDevice>());
    RINGCCL_ASSIGN(const CudaModule* cuda, cuda_module(settings.cuda_module));
    return cuda->open(settings.cuda_device);
}

}  // namespace

Status make_communicator(const ringUniqueId& id, int rank, int size, const Settings& settings, ringComm_t* comm) {
    auto device = open_device(settings);
    if (!device.ok()) {
        Fabric::decline(id, rank, size, settings, device.status());
        return device.status();
    }
    const uint64_t ticket = communicators().add(std::make_shared<Communicator>(rank, size, settings, device.take()));
    if (ticket == 0) return failure(ringInvalidUsage, "too many communicators in one process; destroy some");
    // Another thread may be looking for what it can abort.
    std::atomic_ref<ringComm_t> handle(*comm);
    const ringComm_t before = handle.exchange(reinterpret_cast<ringComm_t>(ticket));
    Status status;
    {
        // Pinned, so that nobody destroys it meanwhile.
        const CommPin pin = communicators().find(ticket);
        status = pin ? pin->meet(id) : failure(ringInvalidUsage, "the communicator was destroyed while it was being made");
    }
    if (status.ok()) return {};
    handle.store(before);
    (void)communicators().remove(ticket);
    return status;
}

ringResult_t report(const Status& status) noexcept {
    if (status.ok()) return ringSuccess;
    try {
        last_error = status.text();
        no_memory = false;
    } catch (...) {
        no_memory = true;
    }
    return status.code();
}

ringResult_t report_no_memory() noexcept {
    no_memory = true;
    return ringSystemError;
}

std::vector<std::string> link_report(ringComm_t comm) {
    auto pin = find_made(comm, "link_report");
    return pin.ok() ? pin.value()->link_report() : std::vector<std::string>{pin.status().text()};
}

}  // namespace ringccl

using namespace ringccl;

ringResult_t ringGetVersion(int* version) {
    return entry("ringGetVersion", [&]() -> Status {
        if (version == nullptr) return failure(ringInvalidArgument, "ringGetVersion: version is NULL");
        *version = RINGCCL_VERSION;
        return {};
    });
}

const char* ringGetErrorString(ringResult_t result) {
    switch (result) {
        case ringSuccess:
            return "ringSuccess: no error";
        case ringUnhandledCudaError:
            return "ringUnhandledCudaError: a CUDA call failed";
        case ringSystemError:
            return "ringSystemError: a system call failed";
        case ringInternalError:
            return "ringInternalError: a bug in ringccl";
        case ringInvalidArgument:
            return "ringInvalidArgument: an argument is wrong by itself";
        case ringInvalidUsage:
            return "ringInvalidUsage: the call does not fit the state";
        case ringRemoteError:
            return "ringRemoteError: another rank failed, died or aborted";
        case ringInProgress:
            return "ringInProgress: asynchronous work is still running";
        case ringTimeout:
            return "ringTimeout: nothing moved for the configured time";
        case ringMismatch:
            return "ringMismatch: the ranks do not agree on the operation";
    }
    return "unknown result code";
}

const char* ringGetLastError(ringComm_t comm) {
    static thread_local std::string text;
    try {
        if (comm == nullptr) return no_memory ? kNoMemory : last_error.c_str();
        auto pin = find_communicator(comm, "ringGetLastError");
        text = pin.ok() ? pin.value()->health().first().text() : pin.status().text();
        // A communicator that is well has nothing to say; then it was the call.
        return !text.empty() ? text.c_str() : no_memory ? kNoMemory : last_error.c_str();
    } catch (...) {
        return kNoMemory;
    }
}

ringResult_t ringCommGetAsyncError(ringComm_t comm, ringResult_t* asyncError) {
    return entry("ringCommGetAsyncError", [&]() -> Status {
        if (asyncError == nullptr) return failure(ringInvalidArgument, "ringCommGetAsyncError: asyncError is NULL");
        RINGCCL_ASSIGN(CommPin pin, find_communicator(comm, "ringCommGetAsyncError"));
        *asyncError = pin->async_error();
        return {};
    });
}
