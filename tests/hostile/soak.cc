// Random jobs with random faults, for as long as you like: every answer is checked, nobody may hang, nothing may be left. The
// same seed makes the same rounds; `--round` makes one of them again.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>

#include "job.h"
#include "support/values.h"

namespace ringccl::test {
namespace {

struct Options {
    int seconds = 0;
    uint64_t seed = 0;
    int ranks = 4;
    std::string transport = "any";
    int round = -1;
    int limit_s = 90;
};

constexpr Path kAnyPath[] = {kMemfd, kCma, kTcp, {"hosts", "auto", true, true}};
constexpr const char* kPlans[] = {"auto", "auto", "ring", "oneshot", "twoshot", "doubling", "tree", "star", "hierarchical"};

// Draws of one round, from its seed and number alone. std::mt19937_64 gives the same numbers everywhere; the standard's
// distributions do not.
class Lot {
public:
    Lot(uint64_t seed, int round) : generator_(seed * 1000003 + uint64_t(round)) {}

    int below(int most) { return int(generator_() % uint64_t(most)); }
    bool one_in(int n) { return below(n) == 0; }
    template <class Range>
    const auto& of(const Range& range) {
        return std::begin(range)[below(int(std::size(range)))];
    }
    // Small ones are as likely as large ones, and none at all now and then.
    size_t count() { return one_in(12) ? 0 : size_t(std::exp2(below(1700) / 100.0)); }

private:
    std::mt19937_64 generator_;
};

Call random_call(Lot& lot, int ranks) {
    Call call;
    constexpr Form kForms[] = {Form::collective, Form::collective, Form::collective, Form::collective,
                               Form::relay,      Form::exchange,   Form::group};
    constexpr Kind kKinds[] = {Kind::all_reduce, Kind::all_reduce, Kind::scatter_reduce, Kind::all_gather, Kind::broadcast,
                               Kind::reduce,     Kind::gather,     Kind::scatter,        Kind::all_to_all, Kind::barrier};
    call.form = lot.of(kForms);
    call.c.kind = call.form == Form::collective ? lot.of(kKinds) : Kind::all_reduce;
    call.c.type = lot.of(kAllTypes);
    call.c.op = lot.of(kAllOps);
    call.c.count = call.c.kind == Kind::barrier ? 0 : lot.count();
    call.c.in_place = call.c.kind != Kind::all_to_all && lot.one_in(2);
    call.c.root = lot.below(ranks);
    call.c.shift = size_t(lot.below(3) * 4);
    call.streamed = lot.one_in(4);
    return call;
}

Moment random_moment(Lot& lot, Fault fault) {
    constexpr Moment kAll[] = {Moment::before, Moment::inside, Moment::during, Moment::outside};
    constexpr Moment kOwn[] = {Moment::before, Moment::inside, Moment::during};
    if (fault == Fault::kill || fault == Fault::stop) return lot.of(kAll);
    if (fault == Fault::exit || fault == Fault::abort || fault == Fault::cut) return lot.of(kOwn);
    return Moment::before;
}

// A scene that is possible. Slow faults are rarer.
Scene random_scene(const Options& options, int round) {
    Lot lot(options.seed, round);
    for (;;) {
        Scene scene;
        scene.ranks = options.ranks;
        do scene.path = lot.of(kAnyPath);
        while (options.transport != "any" && options.transport != scene.path.transport && options.transport != scene.path.name);
        scene.hosts = std::string(scene.path.name) == "hosts";
        scene.per_process = lot.one_in(4) ? 2 : 1;
        scene.path.pointer = lot.one_in(2);
        scene.algorithm = lot.of(kPlans);
        const int calls = 1 + lot.below(8);
        for (int i = 0; i < calls; ++i) scene.calls.push_back(random_call(lot, scene.ranks));
        scene.fault = lot.of(kFaults);
        const bool slow = scene.fault == Fault::stop || scene.fault == Fault::late;
        if (slow && !lot.one_in(3)) continue;
        scene.rank = lot.below(scene.ranks);
        scene.moment = random_moment(lot, scene.fault);
        scene.at = lot.below(calls + (scene.harmless() ? 0 : 3));
        scene.after_us = lot.below(lot.one_in(2) ? 300 : 20000);
        scene.byte = scene.fault == Fault::corrupt_payload ? 40 + lot.below(4) : lot.below(40);
        scene.heartbeat_ms = scene.fault == Fault::stop ? 1500 : 30000;
        scene.timeout_ms = scene.fault == Fault::late ? 1000 : scene.fault == Fault::corrupt_header ? 3000 : 30000;
        scene.shrink = lot.one_in(2);
        if (scene.possible()) return scene;
    }
}

struct Totals {
    int rounds = 0;
    uint64_t calls = 0;
    std::map<std::string, int> faults;
    double worst_ms = 0;
    int worst_round = -1;
    int violations = 0;

    void add(const Scene& scene, const Outcome& outcome, int round) {
        ++rounds;
        ++faults[fault_name(scene.fault)];
        for (const Outcome::Process& process : outcome.processes)
            for (const Report& report : process.ranks) calls += report.call + 1;
        // These wait for what is set, not for the library.
        const bool set = scene.fault == Fault::stop || scene.fault == Fault::late || scene.fault == Fault::delay;
        if (const double ms = outcome.worst_ms(); !set && ms > worst_ms) worst_ms = ms, worst_round = round;
    }
    void print(uint64_t seed, double seconds) const {
        std::string kinds;
        for (const auto& [name, count] : faults) kinds += fmt::format(" {} {}", name, count);
        fmt::print(
            "soak: seed {}, {:.0f} s, {} rounds, {} calls of ranks, worst answer {:.0f} ms (round {}), {} violations;{}\n",
            seed, seconds, rounds, calls, worst_ms, worst_round, violations, kinds);
    }
};

int soak(const Options& options) {
    using Clock = Deadline::Clock;
    const Clock::time_point start = Clock::now();
    const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    Totals totals;
    double printed = 0;
    for (int round = std::max(options.round, 0); options.round >= 0 ? round == options.round : elapsed() < options.seconds;
         ++round) {
        const Scene scene = random_scene(options, round);
        if (options.round >= 0) fmt::print("round {}: {}\n", round, scene.text());
        const Outcome outcome = run_job(scene, options.limit_s);
        totals.add(scene, outcome, round);
        if (Verdict verdict = judge(scene, outcome); !verdict) {
            ++totals.violations;
            fmt::print("VIOLATION in round {} of seed {} (soak --seed {} --ranks {} --transport {} --round {}): {}\n", round,
                       options.seed, options.seed, options.ranks, options.transport, round, verdict.message());
        }
        if (elapsed() - printed > 5) {
            printed = elapsed();
            fmt::print("{:6.0f} s: {} rounds, {} calls, {} violations\n", printed, totals.rounds, totals.calls,
                       totals.violations);
        }
        std::fflush(stdout);
    }
    totals.print(options.seed, elapsed());
    return totals.violations == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ringccl::test

int main(int argc, char** argv) {
    using namespace ringccl::test;
    Options options;
    options.seconds = quick() ? 10 : 60;
    options.seed = std::random_device()();
    CLI::App app{"Makes random jobs suffer random faults and checks every answer. Exit code 1 if one was wrong.", "soak"};
    app.add_option("--seconds", options.seconds, "How long (60)")->check(CLI::Range(1, 10000000));
    app.add_option("--seed", options.seed, "Of all draws (random)");
    app.add_option("--ranks", options.ranks, "In every job (4)")->check(CLI::Range(2, kMostRanks));
    app.add_option("--transport", options.transport, "any, p2p, p2p_memfd, p2p_cma, tcp or hosts (any)")
        ->check(CLI::IsMember({"any", "p2p", "p2p_memfd", "p2p_cma", "tcp", "hosts"}));
    app.add_option("--round", options.round, "Only this round");
    app.add_option("--limit", options.limit_s, "Seconds after which a round counts as hanging (90)")
        ->check(CLI::Range(1, 3600));
    CLI11_PARSE(app, argc, argv);
    return soak(options);
}
