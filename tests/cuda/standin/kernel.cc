#include "kernel.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>

#include "call.h"
#include "device.h"
#include "memory.h"
#include "settings.h"

namespace standin {
namespace {

struct Registry {
    std::mutex mutex;
    std::map<const void*, std::unique_ptr<Kernel>> kernels;
};

Registry& registry() {
    static Registry& instance = *new Registry;
    return instance;
}

using Twin = std::map<std::string_view, const StandinKernel*>;

Twin open_twin() {
    Twin twin;
    const char* path = settings().twin.c_str();
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void* entry = library ? dlsym(library, "standin_kernels") : nullptr;
    if (!entry) {
        std::fprintf(stderr, "stand-in: %s is no twin: %s\n", path, dlerror());
        return twin;
    }
    size_t count = 0;
    const StandinKernel* kernels = reinterpret_cast<decltype(&standin_kernels)>(entry)(&count);
    for (size_t i = 0; i < count; i++) twin[kernels[i].name] = &kernels[i];
    return twin;
}

const Twin& twin() {
    static const Twin& instance = *new Twin(open_twin());
    return instance;
}

// A launch's own copy of its arguments.
class Arguments {
public:
    Arguments(const StandinKernel& code, void** values) : code_(code) {
        size_t bytes = 0;
        for (size_t i = 0; i < code.argument_count; i++) bytes += room(code.argument_sizes[i]);
        storage_ = std::make_unique<Slot[]>(bytes / sizeof(Slot));
        char* place = reinterpret_cast<char*>(storage_.get());
        for (size_t i = 0; i < code.argument_count; i++) {
            std::memcpy(place, values[i], code.argument_sizes[i]);
            pointers_.push_back(place);
            place += room(code.argument_sizes[i]);
        }
    }

    void** pointers() { return pointers_.data(); }

    // Whether each word that is a known address is one that the device may touch. What the kernel does with it is not known, so
    // only its first byte counts.
    bool may_be_touched(int physical_device) const {
        for (size_t i = 0; i < code_.argument_count; i++) {
            for (size_t offset = 0; offset + sizeof(void*) <= code_.argument_sizes[i]; offset += sizeof(void*)) {
                void* word;
                std::memcpy(&word, static_cast<const char*>(pointers_[i]) + offset, sizeof word);
                if (!memory().may_touch(physical_device, word, 1, false)) return false;
            }
        }
        return true;
    }

private:
    struct alignas(64) Slot {
        char bytes[64];
    };
    static size_t room(size_t bytes) { return (bytes + sizeof(Slot) - 1) / sizeof(Slot) * sizeof(Slot); }

    const StandinKernel& code_;
    std::unique_ptr<Slot[]> storage_;
    std::vector<void*> pointers_;
};

bool is_next_failing_launch() {
    static std::atomic<int> launches{0};
    return ++launches == settings().failing_launch;
}

}  // namespace

const StandinKernel* Kernel::code() {
    std::call_once(looked_up_, [this] {
        auto entry = twin().find(name_);
        if (entry != twin().end())
            code_ = entry->second;
        else
            std::fprintf(stderr, "stand-in: the twin has no kernel %s\n", name_.c_str());
    });
    return code_;
}

void register_kernel(const void* host_function, const char* name) {
    std::scoped_lock lock(registry().mutex);
    registry().kernels[host_function] = std::make_unique<Kernel>(name);
}

Kernel* find_kernel(const void* host_function) {
    std::scoped_lock lock(registry().mutex);
    auto entry = registry().kernels.find(host_function);
    return entry == registry().kernels.end() ? nullptr : entry->second.get();
}

cudaError_t launch(Kernel* kernel, dim3 grid, dim3 block, void** values, Stream* stream) {
    if (!kernel) return cudaErrorInvalidDeviceFunction;
    if (!stream || &stream->device() != &current_device()) return cudaErrorInvalidResourceHandle;
    auto volume = [](dim3 size) { return size_t{size.x} * size.y * size.z; };
    if (volume(grid) == 0 || volume(block) == 0 || volume(block) > 1024 || grid.y > 65535 || grid.z > 65535)
        return cudaErrorInvalidConfiguration;
    const StandinKernel* code = kernel->code();
    if (!code) return cudaErrorInvalidDeviceFunction;

    auto arguments = std::make_shared<Arguments>(*code, values);
    bool fails = is_next_failing_launch();
    if (!settings().real_grid) grid = block = dim3{1, 1, 1};
    int device = stream->device().physical();
    stream->device().submit(*stream, [=] {
        if (fails || !arguments->may_be_touched(device)) return set_sticky_error(cudaErrorIllegalAddress);
        Memory::Touch touch;
        Seen seen;
        code->run(code->code, arguments->pointers(), grid, block);
    });
    return cudaSuccess;
}

}  // namespace standin
