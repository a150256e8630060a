#include <fmt/format.h>

#include "parts.h"
#include "world.h"

namespace ringccl::gpu_bench {
namespace {

constexpr int kMostCalls = 200;
constexpr size_t kLatencyBytes = 8;

// Every rank's input must be read and every rank's output be written, once: 2 * ranks * bytes pass through the device's memory,
// and no faster than a copy moves them.
double least_seconds(int ranks, size_t bytes, double copy_rate) {
    return 2.0 * ranks * static_cast<double>(bytes) / copy_rate;
}

double median_of_rank(Member& member, const Effort& effort, size_t bytes) {
    // All ranks must make as many calls, so the number cannot be taken from a rank's own clock.
    const int calls = effort.round_seconds == 0 ? 2 : std::clamp(static_cast<int>((size_t{2} << 30) / bytes), 8, kMostCalls);
    member.seconds(bytes, std::max(calls / 4, 2));
    std::vector<double> rounds;
    for (int round = 0; round < effort.rounds; ++round) rounds.push_back(member.seconds(bytes, calls));
    return median(rounds);
}

void print_latency(const Effort& effort) {
    run_world(2, kLatencyBytes, [&](Member& member) {
        std::vector<double> single;
        for (int i = 0; i < (effort.round_seconds == 0 ? 4 : 1000); ++i) single.push_back(member.seconds(kLatencyBytes, 1));
        if (member.rank() != 0) return;
        std::ranges::sort(single);
        fmt::print("2 ranks, {} B, from the call to its end in the stream: median {:.1f} us, 99th percentile {:.1f} us\n",
                   kLatencyBytes, median(single) * 1e6, single[single.size() * 99 / 100] * 1e6);
    });
}

}  // namespace

void print_allreduce_times(const Effort& effort, double copy_rate) {
    fmt::print(
        "\n(b) allReduce of float32 between ranks (threads) on one GPU: median time of a call among calls that follow each "
        "other, and "
        "how many\n    times the least it is, (2 * ranks * bytes) / {:.1f} GB/s, at which a copy reads and writes\n{:>6} "
        "{:>12} "
        "{:>12} {:>12} {:>8}\n",
        copy_rate / 1e9, "ranks", "KiB", "time (us)", "least (us)", "ratio");
    for (int ranks : {2, 4, 8}) {
        run_world(ranks, effort.messages.back(), [&](Member& member) {
            for (size_t bytes : effort.messages) {
                const double seconds = median_of_rank(member, effort, bytes), least = least_seconds(ranks, bytes, copy_rate);
                if (member.rank() == 0)
                    fmt::print("{:>6} {:>12} {:>12.1f} {:>12.1f} {:>8.2f}\n", ranks, bytes >> 10, seconds * 1e6, least * 1e6,
                               seconds / least);
            }
        });
    }
    print_latency(effort);
}

}  // namespace ringccl::gpu_bench
