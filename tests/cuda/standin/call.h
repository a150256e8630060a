// What all entry points have in common: each is counted, may be told to fail, and fails once the device has.
#pragma once

#include <driver_types.h>

#include "edges.h"

namespace standin {

// The error of an illegal access or a failed kernel: it stays until the process ends, whatever is called.
cudaError_t sticky_error();
void set_sticky_error(cudaError_t error);

// The thread's last error, as cudaGetLastError knows it. Returns `error`.
cudaError_t record(cudaError_t error);
cudaError_t last_error();
void forget_last_error();

// Marks this thread as one that runs a host function, in which no entry point may be called.
class HostFunctionScope {
public:
    HostFunctionScope();
    ~HostFunctionScope();
};

void count(const char* entry_point);
// Counts the call and says why it cannot go on, if so.
cudaError_t begin(const char* entry_point);

// The frame of an entry point: `return call(__func__, [&] { ...; return cudaSuccess; });`
template <typename Body>
cudaError_t call(const char* entry_point, Body body) {
    Hidden hidden;
    cudaError_t error = begin(entry_point);
    return record(error == cudaSuccess ? body() : error);
}

}  // namespace standin
