// What makes a twin (twin.h) of kernels. Its one source file looks so:
//
//     #include "emulation.h"  // declares threadIdx, blockIdx, blockDim and gridDim, as thread_local variables
//     #include "thunk.h"
//     #include "kernels.cuh"
//     STANDIN_KERNELS(STANDIN_KERNEL(add), STANDIN_KERNEL(reduce<float>))
//
// It must be linked with -Bsymbolic: nvcc's launch stub of a kernel has the very name of the kernel.
#pragma once

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "twin.h"

namespace standin {

// Of all kernels with these parameters.
template <typename... Parameters>
struct Thunk {
    using Kernel = void (*)(Parameters...);
    // No array of no elements: one more.
    static constexpr std::array<size_t, sizeof...(Parameters) + 1> sizes{sizeof(Parameters)..., 0};

    static void run(const void* code, void** arguments, dim3 grid, dim3 block) {
        const auto kernel = reinterpret_cast<Kernel>(const_cast<void*>(code));
        gridDim.x = grid.x, gridDim.y = grid.y, gridDim.z = grid.z;
        blockDim.x = block.x, blockDim.y = block.y, blockDim.z = block.z;
        for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
            for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
                for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++) run_block(kernel, arguments, block);
    }

private:
    static void run_block(Kernel kernel, void** arguments, dim3 block) {
        for (threadIdx.z = 0; threadIdx.z < block.z; threadIdx.z++)
            for (threadIdx.y = 0; threadIdx.y < block.y; threadIdx.y++)
                for (threadIdx.x = 0; threadIdx.x < block.x; threadIdx.x++)
                    run_thread(kernel, arguments, std::index_sequence_for<Parameters...>());
    }
    // By value into the kernel: what one thread does to its parameters is not seen by the next.
    template <size_t... index>
    static void run_thread(Kernel kernel, [[maybe_unused]] void** arguments, std::index_sequence<index...>) {
        kernel(*static_cast<std::remove_const_t<Parameters>*>(arguments[index])...);
    }
};

template <typename... Parameters>
StandinKernel entry(void (*kernel)(Parameters...)) {
    const auto* code = reinterpret_cast<const void*>(kernel);
    const auto run = &Thunk<Parameters...>::run;
    Dl_info info{}, home{};
    dladdr(code, &info);
    dladdr(reinterpret_cast<const void*>(run), &home);
    if (!info.dli_sname || info.dli_saddr != code || info.dli_fbase != home.dli_fbase) {
        std::fprintf(stderr,
                     "stand-in: a kernel of the twin is not exported, or not bound to the twin's own code (-Bsymbolic)\n");
        std::abort();
    }
    return {info.dli_sname, code, run, sizeof...(Parameters), Thunk<Parameters...>::sizes.data()};
}

}  // namespace standin

#define STANDIN_KERNEL(...) standin::entry(&__VA_ARGS__)
#define STANDIN_KERNELS(...)                                                                                \
    extern "C" __attribute__((visibility("default"))) const StandinKernel* standin_kernels(size_t* count) { \
        static const StandinKernel kernels[] = {__VA_ARGS__};                                               \
        *count = sizeof kernels / sizeof *kernels;                                                          \
        return kernels;                                                                                     \
    }
