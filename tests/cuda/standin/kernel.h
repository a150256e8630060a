// Kernels: those that nvcc's code registers, the twin's code for them, and their launches.
#pragma once

#include <driver_types.h>

#include <mutex>
#include <string>

#include "stream.h"
#include "twin.h"

namespace standin {

class Kernel {
public:
    explicit Kernel(std::string name) : name_(std::move(name)) {}

    const std::string& name() const { return name_; }
    // The twin's code for it; null, after a word on standard error, if there is none.
    const StandinKernel* code();

private:
    const std::string name_;
    std::once_flag looked_up_;
    const StandinKernel* code_ = nullptr;
};

void register_kernel(const void* host_function, const char* name);
// Null if it was not registered.
Kernel* find_kernel(const void* host_function);

// Arguments are copied before this returns.
cudaError_t launch(Kernel* kernel, dim3 grid, dim3 block, void** arguments, Stream* stream);

}  // namespace standin
