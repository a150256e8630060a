// Every fault, over every path, in every kind of call and plan: all ranks answer in time, with the right code, and name the
// right rank; those that are left make a smaller communicator and go on; nothing is left behind. The product is thinned: each
// fault meets each path, and plans, calls, world sizes, ranks and moments take turns. The soak (soak.cc) draws the rest by lot.
#include <cstdio>
#include <string>

#include "job.h"

namespace ringccl::test {
namespace {

constexpr const char* kPlans[] = {"ring", "oneshot", "twoshot", "doubling", "tree", "star", "auto"};

// What is called when the fault comes. The first is short, the second takes many windows.
const Call kCalls[] = {
    {.c = {.kind = Kind::all_reduce, .count = 2}},
    {.c = {.kind = Kind::all_reduce, .count = 200003}},
    {.c = {.kind = Kind::scatter_reduce, .count = 1000}},
    {.c = {.kind = Kind::all_gather, .count = 30001}},
    {.c = {.kind = Kind::broadcast, .count = 5000, .root = 1}},
    {.c = {.kind = Kind::reduce, .op = Op::max, .count = 1, .root = 2}},
    {.form = Form::relay, .c = {.count = 20000}},
    {.c = {.kind = Kind::gather, .count = 300}},
    {.c = {.kind = Kind::scatter, .count = 20000, .root = 1}},
    {.form = Form::group, .c = {.count = 5000}},
    {.c = {.kind = Kind::all_to_all, .count = 3000}},
    {.c = {.kind = Kind::barrier}},
    {.form = Form::exchange, .c = {.count = 50000}},
    {.c = {.kind = Kind::all_reduce, .type = ringInt8, .op = Op::avg, .count = 999}},
    {.c = {.kind = Kind::all_reduce, .count = 0}},
    {.c = {.kind = Kind::all_reduce, .count = 70000}, .streamed = true},
    {.form = Form::group, .c = {.count = 100}, .streamed = true},
    {.c = {.kind = Kind::all_gather, .count = 0}},
    {.c = {.kind = Kind::reduce, .type = ringFloat64, .count = 40000, .in_place = true}},
};
constexpr int kCallCount = std::size(kCalls);

// Shared memory within made-up hosts, TCP between them.
constexpr Path kHosts = {"hosts", "auto", true, true};

std::vector<Moment> moments_of(Fault fault) {
    switch (fault) {
        case Fault::kill:
        case Fault::stop:
            return {Moment::before, Moment::inside, Moment::outside};
        case Fault::exit:
        case Fault::abort:
        case Fault::cut:
            return {Moment::before, Moment::inside, Moment::during};
        default:
            return {Moment::before};
    }
}

struct Trial {
    Fault fault;
    Path path;

    friend void PrintTo(const Trial& trial, std::ostream* out) { *out << fault_name(trial.fault) << ' ' << trial.path.name; }
};

// The `turn`-th scene of a trial; a different mixture for each.
Scene scene_of(const Trial& trial, int turn) {
    const int number = turn * 7 + int(trial.fault) * 3 + int(trial.path.name[4]) + int(trial.path.name[0]);
    Scene scene;
    scene.path = trial.path;
    scene.fault = trial.fault;
    scene.hosts = std::string(trial.path.name) == kHosts.name;
    scene.ranks = 3 + number % 3;
    if (turn % 4 == 3) scene.ranks = 4, scene.per_process = 2, scene.path.pointer = turn % 8 == 3;
    scene.algorithm = scene.hosts && turn % 2 == 0 ? "hierarchical" : kPlans[number % std::size(kPlans)];
    if (scene.hosts) scene.ranks = 4 + turn % 2, scene.per_process = 1;
    scene.rank = (number / 2) % scene.ranks;
    scene.byte = trial.fault == Fault::corrupt_payload ? 40 + number % 4 : (turn * 11 + number / 3) % 40;
    scene.after_us = (number * 137) % 3000;
    scene.heartbeat_ms = trial.fault == Fault::stop ? 1500 : 30000;
    scene.timeout_ms = trial.fault == Fault::late ? 1000 : trial.fault == Fault::corrupt_header ? 3000 : 30000;
    scene.shrink = scene.deadly() || trial.fault == Fault::abort || turn % 3 == 0;
    const std::vector<Moment> moments = moments_of(trial.fault);
    scene.moment = moments[turn % moments.size()];
    // From where this trial's turn is on, the next call in which the fault can happen.
    for (int i = 0; i < kCallCount; ++i) {
        scene.calls = {kCalls[0], kCalls[(number + i) % kCallCount], kCalls[(number + i + 2) % kCallCount]};
        if (scene.possible()) break;
    }
    return scene;
}

int turns() {
    return quick() ? 1 : 4;
}

class Faults : public ::testing::TestWithParam<Trial> {};

TEST_P(Faults, AreAnsweredByAll) {
    double worst = 0;
    for (int turn = 0; turn < turns(); ++turn) {
        const Scene scene = scene_of(GetParam(), turn);
        ASSERT_TRUE(scene.possible()) << scene.text();
        const Outcome outcome = run_job(scene, 60);
        EXPECT_TRUE(judge(scene, outcome));
        worst = std::max(worst, outcome.worst_ms());
    }
    std::printf("%s over %s: the last answer came %.1f ms after the fault\n", fault_name(GetParam().fault),
                GetParam().path.name, worst);
}

std::vector<Trial> trials() {
    std::vector<Trial> all;
    for (const Path& path : {kMemfd, kCma, kTcp, kHosts})
        for (Fault fault : kFaults) {
            const bool corrupts = fault == Fault::corrupt_header || fault == Fault::corrupt_payload;
            if (!corrupts || std::string(path.name) == kTcp.name) all.push_back({fault, path});
        }
    return all;
}

std::string trial_name(const ::testing::TestParamInfo<Trial>& info) {
    return std::string(fault_name(info.param.fault)) + "_" + info.param.path.name;
}

INSTANTIATE_TEST_SUITE_P(, Faults, ::testing::ValuesIn(trials()), trial_name);

// Each byte of the header matters to somebody: whichever is damaged, all ranks get an error.
TEST(Header, EveryByteIsNoticed) {
    const int step = quick() ? 7 : 1;
    for (int byte = 0; byte < 40; byte += step) {
        Scene scene = {.ranks = 3, .path = kTcp, .algorithm = "ring"};
        scene.calls = {{.c = {.count = 3000}}};
        scene.fault = Fault::corrupt_header;
        scene.byte = byte;
        scene.rank = byte % 3;
        scene.timeout_ms = 3000;
        EXPECT_TRUE(judge(scene, run_job(scene, 60)));
    }
}

// A disagreement is found out in every call that has the field, on no data too.
TEST(Disagreements, InEveryCall) {
    const std::vector<Fault> faults = {Fault::other_kind, Fault::other_type, Fault::other_op, Fault::other_count,
                                       Fault::other_root, Fault::skip,       Fault::extra};
    int number = 0;
    for (Fault fault : faults)
        for (int call = 0; call < kCallCount; ++call) {
            for (const Path& path : {kMemfd, kTcp}) {
                Scene scene = {.ranks = 3 + number % 3, .path = path, .algorithm = kPlans[number % std::size(kPlans)]};
                scene.calls = {kCalls[1], kCalls[call], kCalls[(call + 1) % kCallCount]};
                scene.fault = fault;
                scene.rank = (number / 3) % scene.ranks;
                if (!scene.possible() || (quick() && ++number % 8 != 0)) continue;
                ++number;
                EXPECT_TRUE(judge(scene, run_job(scene, 60)));
            }
        }
}

// The test itself must be able to fail: a rank that is told of the wrong rank, or too late, or that leaves something behind.
TEST(Judge, Judges) {
    Scene scene = {.ranks = 3, .calls = {Scene::needs_all()}, .fault = Fault::kill, .rank = 1};
    Outcome outcome;
    outcome.processes.resize(3);
    outcome.processes[1] = {.ended = true, .signal = 9};
    const Report told = {.code = ringRemoteError, .text = "rank 1 (process 7 on a) has died", .answered_ms = 3};
    for (int p : {0, 2}) {
        outcome.processes[p] = {.ended = true, .ranks = {told}};
        outcome.processes[p].ranks[0].rank = p;
    }
    EXPECT_TRUE(judge(scene, outcome));
    const auto refused = [&](auto change) {
        Outcome other = outcome;
        change(other.processes[2], other.processes[2].ranks[0]);
        return !judge(scene, other);
    };
    using Process = Outcome::Process;
    EXPECT_TRUE(refused([](Process&, Report& r) { r.code = ringTimeout; }));
    EXPECT_TRUE(refused([](Process&, Report& r) { r.code = ringSuccess; }));
    EXPECT_TRUE(refused([](Process&, Report& r) { r.text = "rank 12 has died"; }));
    EXPECT_TRUE(refused([](Process&, Report& r) { r.answered_ms = 20000; }));
    EXPECT_TRUE(refused([](Process&, Report& r) { r.wrong = "after the shrink: anything"; }));
    EXPECT_TRUE(refused([](Process&, Report& r) { r.failed = {1, 2}; }));
    EXPECT_TRUE(refused([](Process& p, Report&) { p.left = "1 more threads"; }));
    EXPECT_TRUE(refused([](Process& p, Report&) { p.signal = 11; }));
    EXPECT_TRUE(refused([](Process& p, Report&) { p.ended = false; }));
    EXPECT_TRUE(refused([](Process& p, Report&) { p.ranks.clear(); }));
}

}  // namespace
}  // namespace ringccl::test
