// What ringccl is, what it finds on this machine, and every way to set it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>

#include "base/cpus.h"
#include "base/knobs.h"
#include "bootstrap/interfaces.h"
#include "communicator/report.h"
#include "kernels/cpu/kernels.h"
#include "knob_pages.h"
#include "perf/launcher.h"

namespace ringccl {
namespace {

constexpr int kProbeMs = 10000;

void print_build() {
    int version = 0;
    ringGetVersion(&version);
    fmt::print("ringccl {}.{}.{}\n", version / 10000, version / 100 % 100, version % 100);
    fmt::print("  reduce kernels   {}\n", kernel_target());
    fmt::print("  transports       p2p, tcp\n");
    fmt::print("  modules          cuda: not built, rdma: not built\n");
}

void print_machine(const Settings& settings) {
    CpuLimits limits = cpu_limits();
    std::string quota = std::isinf(limits.quota) ? "no quota" : fmt::format("a quota of {:.2f}", limits.quota);
    fmt::print("\nThis machine\n  devices          host\n");
    fmt::print("  usable CPUs      {} ({} by affinity, {})\n", limits.usable(), limits.affinity, quota);
    auto all = host_interfaces();
    auto chosen = all.ok() ? choose_interfaces(all.value(), settings.interface) : all;
    if (!chosen.ok()) {
        fmt::print("  interfaces       {}\n", chosen.status().text());
        return;
    }
    const char* label = "interfaces";
    for (const Interface& each : chosen.value()) {
        fmt::print("  {:<16} {} {}\n", label, each.name, each.address);
        label = "";
    }
}

int say(ringResult_t result) {
    fmt::print("    {}: {}\n", ringGetErrorString(result), ringGetLastError(nullptr));
    return 1;
}

void print_links(ringComm_t comm) {
    for (const std::string& line : link_report(comm)) fmt::print("    {}\n", line);
}

// Two real ranks, as processes and then as threads of one process. Each trial has processes of its own, so that whatever goes
// wrong in it is only reported.
void print_trials() {
    ringConfig_t config = RINGCCL_CONFIG_INITIALIZER;
    config.initTimeoutMs = kProbeMs;
    auto name = [](int rank) { return fmt::format("rank {}", rank); };

    fmt::print("\nThe link that two ranks on this host get\n  as processes\n");
    perf::IdPipe pipe;
    auto process = [&](int rank) {
        ringUniqueId id{};
        ringResult_t result = ringSuccess;
        if (rank == 0) {
            result = ringGetUniqueId(&id);
            pipe.give(id, 1);
        } else if (!pipe.take(id)) {
            return 1;
        }
        ringComm_t comm = nullptr;
        if (result == ringSuccess) result = ringCommInitRankConfig(&comm, 2, id, rank, &config);
        if (result != ringSuccess) return rank == 0 ? say(result) : 1;
        if (rank == 0) print_links(comm);
        return ringCommDestroy(comm) == ringSuccess ? 0 : 1;
    };
    perf::run_processes(2, process, name);

    fmt::print("  as threads of one process\n");
    auto threads = [&](int) {
        ringComm_t comms[2] = {};
        if (ringResult_t result = ringCommInitAll(comms, 2, &config); result != ringSuccess) return say(result);
        print_links(comms[0]);
        ringCommDestroy(comms[0]);
        ringCommDestroy(comms[1]);
        return 0;
    };
    perf::run_processes(1, threads, name);
}

int run(int argc, char** argv) {
    CLI::App app{"Shows what ringccl finds on this machine and every environment variable that it reads.", "ringccl-info"};
    bool markdown = false, brief = false;
    app.add_flag("--markdown", markdown, "Print the environment variables as a Markdown table, and nothing else");
    app.add_flag("--no-links", brief, "Do not start ranks to see which link they get");
    CLI11_PARSE(app, argc, argv);
    if (markdown) {
        fmt::print("{}", knob_markdown());
        return 0;
    }
    print_build();
    auto settings = settings_from_environment();
    if (!settings.ok()) {
        fmt::print("\nA setting is wrong, and every communicator would fail: {}\n", settings.status().text());
        return 1;
    }
    print_machine(settings.value());
    if (!brief) print_trials();
    fmt::print("\nEnvironment variables (* changed)\n{}", knob_list(settings.value()));
    return 0;
}

}  // namespace
}  // namespace ringccl

int main(int argc, char** argv) {
    return ringccl::run(argc, argv);
}
