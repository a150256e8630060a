#include <fmt/format.h>

#include "fma.h"
#include "parts.h"
#include "world.h"

namespace ringccl::gpu_bench {
namespace {

constexpr int kWaves = 64;
constexpr double kComputeSeconds = 0.02;

// A kernel of about kComputeSeconds.
class Computation {
public:
    explicit Computation(const Effort& effort) {
        int multiprocessors = 0;
        GPU_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
        blocks_ = multiprocessors * 8 * kWaves;  // 8 of 256 threads are what a multiprocessor holds
        GPU_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        if (effort.round_seconds == 0) return;
        run();
        rounds_ = static_cast<int>(std::clamp(rounds_ * kComputeSeconds / run(), 1.0, 1e8));
    }

    void enqueue() { GPU_CHECK(launch_fma(blocks_, rounds_, stream_)); }
    double run() {
        return stream_seconds(stream_, [&] { enqueue(); });
    }
    void finish() { GPU_CHECK(cudaStreamSynchronize(stream_)); }

private:
    int blocks_ = 0, rounds_ = 1000;
    cudaStream_t stream_ = nullptr;
};

struct Times {
    std::vector<double> compute_alone, compute_beside, reduce_alone, reduce_beside;
};

double slowdown(const std::vector<double>& alone, const std::vector<double>& beside) {
    return 100 * (median(beside) / median(alone) - 1);
}

}  // namespace

void print_overlap(const Effort& effort) {
    Computation computation(effort);
    const size_t bytes = effort.messages.back();
    Times times;
    // Calls of which a few are under way for as long as the computation is; the same number on both ranks.
    const double once = computation.run();
    run_world(2, bytes, [&](Member& member) {
        const bool computes = member.rank() == 0;
        const double least = 1e-4;  // of an allReduce that large
        const int few = 4, many = effort.round_seconds == 0 ? 2 : static_cast<int>(1.5 * once / least);
        member.seconds(bytes, few);
        for (int round = 0; round < effort.rounds; ++round) {
            const double alone = member.seconds(bytes, few);

            member.barrier();
            if (computes) times.compute_alone.push_back(computation.run());

            // The allReduces outlast the computation.
            member.barrier();
            for (int i = 0; i < many; ++i) member.all_reduce(bytes);
            if (computes) times.compute_beside.push_back(computation.run());
            member.finish();

            // The computation outlasts the allReduces.
            member.barrier();
            if (computes) {
                for (int i = 0; i < few; ++i) computation.enqueue();
            }
            const double beside = member.seconds(bytes, few);
            if (!computes) continue;
            computation.finish();
            times.reduce_alone.push_back(alone);
            times.reduce_beside.push_back(beside);
        }
    });
    fmt::print(
        "\n(c) A kernel of multiplications and additions that fills the GPU, and allReduces of {} KiB between 2 ranks on it\n",
        bytes >> 10);
    fmt::print("the kernel:   {:>9.2f} ms alone, {:>9.2f} ms beside allReduces: {:>6.1f} % slower\n",
               median(times.compute_alone) * 1e3, median(times.compute_beside) * 1e3,
               slowdown(times.compute_alone, times.compute_beside));
    fmt::print("an allReduce: {:>9.2f} ms alone, {:>9.2f} ms beside the kernel: {:>6.1f} % slower\n",
               median(times.reduce_alone) * 1e3, median(times.reduce_beside) * 1e3,
               slowdown(times.reduce_alone, times.reduce_beside));
}

}  // namespace ringccl::gpu_bench
