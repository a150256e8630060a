// With print_plans.cc the part of the tools that looks inside the library: its module knows which runtime it runs on, and says
// in one sentence why there is none.
#include "perf/cuda_runtime.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <stdexcept>

#include "base/knobs.h"
#include "device/cuda_module.h"

namespace ringccl::perf {
namespace {

template <class Value>
Value value_of(Result<Value> result) {
    if (!result.ok()) throw std::runtime_error(result.status().text());
    return result.take();
}

// A look-up in a library goes on to those that it depends on.
template <class Function>
void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (!function) throw std::runtime_error(fmt::format("the CUDA runtime that the module brought in has no {}", name));
}

}  // namespace

const CudaRuntime& CudaRuntime::of_process() {
    static const CudaRuntime runtime;
    return runtime;
}

CudaRuntime::CudaRuntime() {
    const CudaModule* module = value_of(cuda_module(value_of(settings_from_environment()).cuda_module));
    devices_ = value_of(module->device_count());

    Dl_info info;
    void* library = dladdr(module, &info) ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : nullptr;
    if (!library) throw std::runtime_error("the module for CUDA devices is loaded, but its file cannot be told");
    find(library, "cudaSetDevice", set_device);
    find(library, "cudaStreamCreateWithFlags", stream_create);
    find(library, "cudaStreamSynchronize", stream_synchronize);
    find(library, "cudaMalloc", allocate);
    find(library, "cudaMemcpyAsync", memcpy_async);
    find(library, "cudaGetDeviceProperties", get_device_properties);
    find(library, "cudaGetErrorString", get_error_string);
}

// The struct grows from version to version, to about 1 KiB so far, but always begins with the name.
std::string CudaRuntime::device_name(int device) const {
    alignas(64) char properties[16384] = {};
    need(get_device_properties(properties, device), "cudaGetDeviceProperties");
    return properties;
}

void CudaRuntime::need(Error error, const char* call) const {
    if (error != 0) throw std::runtime_error(fmt::format("{}: {} (CUDA error {})", call, get_error_string(error), error));
}

}  // namespace ringccl::perf
