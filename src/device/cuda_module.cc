#include "device/cuda_module.h"

#include <dlfcn.h>

#include <mutex>
#include <vector>

namespace ringccl {
namespace {

constexpr const char* kFile = "libringccl_cuda.so";

// The directory of the file that this code is in, with a slash.
std::string own_directory() {
    Dl_info info;
    if (dladdr(reinterpret_cast<const void*>(&cuda_module), &info) == 0 || info.dli_fname == nullptr) return "";
    const std::string file = info.dli_fname;
    return file.substr(0, file.rfind('/') + 1);
}

Result<const CudaModule*> load(const std::string& path) {
    const std::vector<std::string> files =
        path.empty() ? std::vector<std::string>{own_directory() + kFile, kFile} : std::vector{path};
    std::string problem;
    void* library = nullptr;
    for (const std::string& file : files) {
        library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library != nullptr) break;
        // That the file is not there says less than why one that is there cannot be used.
        const std::string why = dlerror();
        if (problem.empty() || why.find("cannot open shared object file") == why.npos || why.find(kFile) != 0) problem = why;
    }
    if (library == nullptr)
        return failure(ringInvalidUsage,
                       "CUDA devices need the module {}, which cannot be loaded: {} (RINGCCL_CUDA_MODULE says where it is)",
                       kFile, problem);
    const auto* module = static_cast<const CudaModule*>(dlsym(library, kCudaModuleSymbol));
    if (module == nullptr || module->version != RINGCCL_VERSION)
        return failure(ringInvalidUsage, "the module {} is of another version of ringccl ({}, this is {})", kFile,
                       module == nullptr ? 0 : module->version, RINGCCL_VERSION);
    return module;
}

}  // namespace

Result<const CudaModule*> cuda_module(const std::string& path) {
    static std::mutex mutex;
    static const CudaModule* loaded = nullptr;
    std::lock_guard lock(mutex);
    if (loaded == nullptr) {
        RINGCCL_ASSIGN(loaded, load(path));
    }
    return loaded;
}

}  // namespace ringccl
