#include "perf/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "perf/launcher.h"

namespace ringccl::perf {
namespace {

constexpr int kMostRanks = 1024;
constexpr size_t kMostBytes = size_t{1} << 48;  // sizes of buffers and strides can be reckoned without overflow

// "float", "float,half" or "all", by way of the tables of types.h.
template <class Entry, class Find>
std::vector<Entry> named(const std::vector<std::string>& names, std::span<const Entry> all, Find find, const char* what) {
    std::vector<Entry> chosen;
    for (const std::string& name : names) {
        if (name == "all") return {all.begin(), all.end()};
        const Entry* entry = find(name);
        if (!entry) {
            std::string known;
            for (const Entry& each : all) known += fmt::format("{}, ", each.name);
            throw CLI::ValidationError(what, fmt::format("\"{}\" is not known; use {}or all", name, known));
        }
        chosen.push_back(*entry);
    }
    return chosen;
}

// Whole numbers, with K, M, G or their longer names for powers of 1024. CLI11 alone would read -1 as 2^64 - 1.
std::string read_size(std::string& text) {
    if (!text.empty() && text.front() == '-')
        return text + " is negative; use a number of bytes from 0 up, such as 8, 64K or 1G";
    std::string error = CLI::AsSizeValue(false)(text);
    if (error.empty() && std::strtoull(text.c_str(), nullptr, 10) > kMostBytes) return text + " bytes are more than 256 TiB";
    return error;
}

// How many ranks to start here. A launcher's ranks are there already, unless the command line says otherwise.
int ranks_to_start(const CLI::Option* given, int ranks, int threads) {
    if (!given->count()) {
        if (launched()) return 0;
        ranks = std::max(2, threads);
    }
    if (ranks % threads != 0) {
        throw CLI::ValidationError("--ranks", fmt::format("{} ranks cannot be divided into processes of {} threads each; use a "
                                                          "multiple of {}",
                                                          ranks, threads, threads));
    }
    return ranks;
}

}  // namespace

std::vector<size_t> Options::sizes() const {
    std::vector<size_t> sizes;
    for (size_t bytes = min_bytes; bytes <= max_bytes;) {
        sizes.push_back(bytes);
        size_t next = 0;
        bool overflow = step_bytes ? __builtin_add_overflow(bytes, step_bytes, &next)
                                   : __builtin_mul_overflow(bytes, static_cast<size_t>(step_factor), &next);
        if (overflow || next <= bytes) break;  // 0 times anything, or a factor of 1: one row
        bytes = next;
    }
    return sizes;
}

std::optional<int> parse_options(int argc, char** argv, const Collective& collective, Options& options) {
    CLI::App app{
        fmt::format("{} measures {}: time, bandwidth and correctness over a range of message sizes. Without a launcher "
                    "(torchrun, mpirun, srun) it starts its ranks itself.",
                    collective.program, collective.name),
        collective.program};
    app.get_formatter()->column_width(38);
    CLI::Validator size(read_size, "");
    std::vector<std::string> types{"float"}, operations{"sum"};
    int average = 1;
    std::string memory = "malloc", device = "host";

    auto* begin = app.add_option("-b,--minbytes", options.min_bytes, "Smallest message; K, M, G may follow (8)");
    begin->transform(size)->type_name("SIZE");
    auto* end = app.add_option("-e,--maxbytes", options.max_bytes, "Largest message (64M)");
    end->transform(size)->type_name("SIZE");
    auto* step = app.add_option("-i,--stepbytes", options.step_bytes, "From row to row add this many bytes");
    step->transform(size)->type_name("SIZE");
    app.add_option("-f,--stepfactor", options.step_factor, "or multiply by this (4)")
        ->check(CLI::Range(1, 1 << 30))
        ->excludes(step);
    app.add_option("-n,--iters", options.iterations, "Measured calls per row (20)")->check(CLI::Range(1, 100000000));
    app.add_option("-w,--warmup_iters", options.warmup, "Calls before the clock starts (5)")->check(CLI::Range(0, 100000000));
    app.add_option("-m,--agg_iters", options.aggregate, "Calls fused into one group, each on buffers of its own (1)")
        ->check(CLI::Range(1, 4096));
    app.add_option("-a,--average", average,
                   "The time in the table: 0 rank 0's, 1 the mean over ranks, 2 the least, 3 the most (1)")
        ->check(CLI::Range(0, 3));
    app.add_option("-d,--datatype", types, "Element types, or all (float)")->delimiter(',');
    if (collective.reduces) app.add_option("-o,--op", operations, "Operations, or all (sum)")->delimiter(',');
    if (collective.rooted)
        app.add_option("-r,--root", options.root, "The root; -1 each in turn (0)")->check(CLI::Range(-1, kMostRanks - 1));
    app.add_option("-c,--check", options.check, "Check every element, 0 or 1 (1)");
    app.add_option("-t,--nthreads", options.threads, "Ranks in each process, as threads (1)")->check(CLI::Range(1, kMostRanks));
    auto* ranks = app.add_option("--ranks", options.ranks, "Start this many ranks on this host (2, unless a launcher has)")
                      ->check(CLI::Range(1, kMostRanks));
    app.add_option("--transport", options.transport, "Transports to use, e.g. p2p or tcp (RINGCCL_TRANSPORT)");
    app.add_option("--algorithm", options.algorithm, "e.g. ring, direct, tree (RINGCCL_ALGORITHM)");
    app.add_option("--memory", memory, "malloc, or ring: from ringMemAlloc")->check(CLI::IsMember({"malloc", "ring"}));
    app.add_option("--device", device,
                   "host, or cuda: buffers on CUDA devices, rank r on device r modulo their number, calls enqueued in a stream "
                   "of each rank (host)")
        ->check(CLI::IsMember({"host", "cuda"}));
    auto* index = app.add_option("--device-index", options.device_index, "With --device cuda: all ranks on this device")
                      ->check(CLI::Range(0, 1023));
    app.add_flag("--stream", options.stream, "Enqueue the calls on a host stream instead of blocking in each");
    app.add_flag(
        "--latency", options.latency,
        "Add columns: p50, p99 and maximum of single calls, on the slowest rank; CUDA streams are waited for after each");
    app.add_option("--json", options.json, "Write the results to this file too");
    app.add_flag("--print-plan", options.print_plan, "Print who sends what to whom for the first row, and exit");

    try {
        app.parse(argc, argv);
        options.types = named<Type>(types, perf::types(), find_type, "--datatype");
        options.operations = collective.reduces ? named<Operation>(operations, perf::operations(), find_operation, "--op")
                                                : std::vector<Operation>{kNoOperation};
        options.average = static_cast<Average>(average);
        options.ring_memory = memory == "ring";
        options.cuda = device == "cuda";
        options.ranks = ranks_to_start(ranks, options.ranks, options.threads);
        if (begin->count() && !end->count()) options.max_bytes = std::max(options.max_bytes, options.min_bytes);
        if (end->count() && !begin->count()) options.min_bytes = std::min(options.min_bytes, options.max_bytes);
        if (options.min_bytes > options.max_bytes) {
            throw CLI::ValidationError("--minbytes",
                                       fmt::format("{} is more than --maxbytes, {}", options.min_bytes, options.max_bytes));
        }
        if (options.latency && options.stream) {
            throw CLI::ValidationError("--latency", "single calls cannot be timed on a stream; leave one of the two out");
        }
        if (options.cuda && (options.ring_memory || options.stream)) {
            throw CLI::ValidationError("--device", fmt::format("{} is of the host; leave it out with --device cuda",
                                                               options.stream ? "--stream" : "--memory ring"));
        }
        if (index->count() && !options.cuda)
            throw CLI::ValidationError("--device-index", "the host has none; add --device cuda");
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    return std::nullopt;
}

}  // namespace ringccl::perf
