// The module ringccl_cuda, which alone depends on the CUDA runtime. It is loaded when a communicator first wants a CUDA device,
// and never unloaded.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "device/device.h"

namespace ringccl {

// What the module exports, under the name kCudaModuleSymbol.
struct CudaModule {
    int version;  // RINGCCL_VERSION of the library that it was built with: they share C++ types
    Result<int> (*device_count)();
    Result<int> (*current_device)();
    Result<std::shared_ptr<Device>> (*open)(int index);
};
constexpr const char* kCudaModuleSymbol = "ringccl_cuda_module";

// ringInvalidUsage: it is not there or does not fit, and why. `path`: where it is; "": beside this library, then where the
// system looks.
Result<const CudaModule*> cuda_module(const std::string& path);

}  // namespace ringccl
