#include "perf/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include "perf/bench.h"
#include "perf/launcher.h"
#include "perf/place.h"
#include "perf/report.h"

namespace ringccl::perf {
namespace {

void need(ringResult_t result, const char* call) {
    if (result == ringSuccess) return;
    throw std::runtime_error(fmt::format("{} failed: {}: {}", call, ringGetErrorString(result), ringGetLastError(nullptr)));
}

ringConfig_t config_of(const Options& options) {
    ringConfig_t config = RINGCCL_CONFIG_INITIALIZER;
    if (!options.transport.empty()) config.transport = options.transport.c_str();
    if (!options.algorithm.empty()) config.algorithm = options.algorithm.c_str();
    return config;
}

std::string host_name() {
    char name[64] = {};
    return gethostname(name, sizeof name - 1) == 0 ? name : "?";
}

// Every combination that was asked for, in the order of the table.
std::vector<Case> cases_of(const Collective& collective, const Options& options, int world) {
    std::vector<Case> cases;
    int first = options.root < 0 ? 0 : options.root, last = options.root < 0 ? world - 1 : options.root;
    for (const Type& type : options.types) {
        for (const Operation& operation : options.operations) {
            for (int root = first; root <= last; ++root) {
                for (size_t bytes : options.sizes()) {
                    size_t count = collective.count_for(bytes, type.size, world);
                    cases.push_back({type, operation, root, count, collective.bytes_of(count, type.size, world)});
                }
            }
        }
    }
    return cases;
}

std::string words_on(const Place& place) {
    std::string name = place.name();
    return fmt::format("Pid {:>7} on {}{}{}", getpid(), host_name(), name.empty() ? "" : ", ", name);
}

// One rank, from the first row to the last; true if all its results were right and written.
bool run_rows(const Collective& collective, const Options& options, Place& place, ringComm_t comm, bool first_of_process) {
    Bench bench(collective, options, place, comm, first_of_process);
    if (options.root >= bench.world()) {
        throw std::runtime_error(fmt::format("root {} is out of range: there are {} ranks", options.root, bench.world()));
    }
    auto words = bench.gather_words(words_on(place));
    Report report(collective, options, bench.world());
    bool speaks = bench.rank() == 0;
    Progress progress(speaks);
    if (speaks) report.header(words);

    bool right = true;
    for (const Case& row : cases_of(collective, options, bench.world())) {
        auto out_of_place = bench.measure(row, false, progress);
        auto in_place = bench.measure(row, true, progress);
        right = right && out_of_place->wrong.value_or(0) == 0 && (!in_place || in_place->wrong.value_or(0) == 0);
        progress.clear();
        if (speaks) report.row(row, out_of_place, in_place);
    }
    if (!speaks) return right;
    report.footer();
    if (!options.json.empty() && !report.write_json(options.json)) {
        throw std::runtime_error(fmt::format("writing {}: {} (errno {})", options.json, std::strerror(errno), errno));
    }
    return right;
}

// Runs one rank, the one of that number among those that share the host's devices, in a communicator that make(config) joins,
// and ends that. A failure ends the whole process at once: the other threads may be waiting for this one, and the other
// processes learn of it as they would of any death.
template <class Make>
bool run_rank(const Collective& collective, const Options& options, int number, const std::string& who, Make make) {
    try {
        std::unique_ptr<Place> place = make_place(options, number);
        ringConfig_t config = config_of(options);
        place->configure(config);
        ringComm_t comm = make(config);
        bool right = run_rows(collective, options, *place, comm, number % options.threads == 0);
        need(ringCommFinalize(comm), "ringCommFinalize");
        need(ringCommDestroy(comm), "ringCommDestroy");
        return right;
    } catch (const std::exception& error) {
        std::fflush(stdout);
        fmt::print(stderr, "{}: {}\n", who, error.what());
        _exit(1);
    }
}

// The ranks of one process, each in a thread of its own when there are several.
int run_threads(const Collective& collective, const Options& options, int process, int world, const ringUniqueId& id) {
    std::vector<char> right(options.threads, 0);
    auto rank = [&](int thread) {
        int number = process * options.threads + thread;
        right[thread] = run_rank(collective, options, number, fmt::format("rank {}", number), [&](const ringConfig_t& config) {
            ringComm_t comm = nullptr;
            need(ringCommInitRankConfig(&comm, world, id, number, &config), "ringCommInitRankConfig");
            return comm;
        });
    };
    std::vector<std::thread> others;
    for (int thread = 1; thread < options.threads; ++thread) others.emplace_back(rank, thread);
    rank(0);
    for (std::thread& other : others) other.join();
    for (char each : right) {
        if (!each) return 1;
    }
    return 0;
}

// This process is one of a launcher's. With threads, the processes first meet in a communicator of their own to hand round the
// id of the one that counts.
int run_launched(const Collective& collective, const Options& options) {
    auto join = [&](const ringConfig_t& config) {
        ringComm_t comm = nullptr;
        need(ringCommInitEnv(&comm, &config), "ringCommInitEnv");
        return comm;
    };
    if (options.threads == 1) {
        std::string who = fmt::format("process {} on {}", getpid(), host_name());
        return run_rank(collective, options, launched_number(), who, join) ? 0 : 1;
    }
    try {
        ringComm_t processes = join(config_of(options));
        int process = 0, count = 1;
        ringUniqueId id{};
        need(ringCommUserRank(processes, &process), "ringCommUserRank");
        need(ringCommCount(processes, &count), "ringCommCount");
        if (process == 0) need(ringGetUniqueId(&id), "ringGetUniqueId");
        need(ringBroadcast(&id, &id, sizeof id, ringUint8, 0, processes, nullptr), "ringBroadcast");
        int code = run_threads(collective, options, process, count * options.threads, id);
        need(ringCommDestroy(processes), "ringCommDestroy");
        return code;
    } catch (const std::exception& error) {
        fmt::print(stderr, "process {} on {}: {}\n", getpid(), host_name(), error.what());
        return 1;
    }
}

// Makes a world of one where rank 0 would be: what is missing for that, every rank would miss and say. In a process of its own,
// as CUDA does not survive a fork.
int try_place(const Options& options) {
    auto body = [&](int) {
        try {
            std::unique_ptr<Place> place = make_place(options, 0);
            ringConfig_t config = config_of(options);
            place->configure(config);
            ringComm_t comm = nullptr;
            need(ringCommInitAll(&comm, 1, &config), "ringCommInitAll");
            need(ringCommDestroy(comm), "ringCommDestroy");
            return 0;
        } catch (const std::exception& error) {
            fmt::print(stderr, "{}\n", error.what());
            return 1;
        }
    };
    return run_processes(1, body, [](int) { return std::string("a world of one rank"); });
}

int run_forked(const Collective& collective, const Options& options) {
    int processes = options.ranks / options.threads;
    IdPipe pipe;
    auto body = [&](int process) {
        ringUniqueId id{};
        if (process != 0) return pipe.take(id) ? run_threads(collective, options, process, options.ranks, id) : 1;
        ringResult_t result = ringGetUniqueId(&id);
        pipe.give(id, processes - 1);
        if (result == ringSuccess) return run_threads(collective, options, process, options.ranks, id);
        fmt::print(stderr, "rank 0: ringGetUniqueId failed: {}: {}\n", ringGetErrorString(result), ringGetLastError(nullptr));
        return 1;
    };
    auto describe = [&](int process) {
        int first = process * options.threads, last = first + options.threads - 1;
        return first == last ? fmt::format("rank {}", first) : fmt::format("ranks {} to {}", first, last);
    };
    return run_processes(processes, body, describe);
}

}  // namespace

int run_session(const Collective& collective, const Options& options) {
    if (options.ranks == 0) return run_launched(collective, options);
    if (options.cuda && try_place(options) != 0) return 1;
    return run_forked(collective, options);
}

}  // namespace ringccl::perf
