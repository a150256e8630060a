// Measures the CUDA kernels and the module on a GPU, and prints three short tables. `gpu_bench --quick` only shows that all of
// it runs. See ../on_gpu.
#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "parts.h"

namespace {

using namespace ringccl::gpu_bench;

void print_card() {
    int devices = 0, runtime = 0, driver = 0;
    GPU_CHECK(cudaGetDeviceCount(&devices));
    cudaDeviceProp card;
    GPU_CHECK(cudaGetDeviceProperties(&card, 0));
    GPU_CHECK(cudaRuntimeGetVersion(&runtime));
    GPU_CHECK(cudaDriverGetVersion(&driver));
    fmt::print("{}, {} multiprocessors, {:.0f} GiB; CUDA runtime {}, driver for CUDA {}; ringccl {}\n", card.name,
               card.multiProcessorCount, static_cast<double>(card.totalGlobalMem) / (1 << 30), runtime, driver,
               RINGCCL_VERSION);
}

}  // namespace

int main(int argc, char** argv) try {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
    const Effort effort = quick ? Effort::quick() : Effort();
    GPU_CHECK(cudaSetDevice(0));
    print_card();
    print_reduce_rates(effort);
    print_allreduce_times(effort, copy_rate(effort, 4 * effort.large));
    print_overlap(effort);
    return 0;
} catch (const std::exception& error) {
    std::fflush(stdout);
    fmt::print(stderr, "gpu_bench: {}\n", error.what());
    return 1;
}
