// Runs each scenario in a process of its own, in the surroundings that it is written for. In a build with ThreadSanitizer, the
// scenarios and the twin are instrumented: then this also shows that it raises no false alarm.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

extern char** environ;

namespace {

constexpr int seeds = 50;

struct Case {
    std::string scenario;
    std::vector<std::string> environment = {};
};

void PrintTo(const Case& printed, std::ostream* stream) {
    *stream << printed.scenario;
    for (const std::string& variable : printed.environment) *stream << ' ' << variable;
}

// What the scenario's process exits with; -1 if it was killed.
int run(const Case& wanted) {
    std::vector<std::string> environment = wanted.environment;
    // ThreadSanitizer would sleep for a second at the end of each process, for its workers still live.
    const char* options = std::getenv("TSAN_OPTIONS");
    environment.push_back(std::string("TSAN_OPTIONS=") + (options ? options : "") + " atexit_sleep_ms=0");
    for (char** variable = environ; *variable; variable++) environment.emplace_back(*variable);
    std::vector<char*> variables;
    for (std::string& variable : environment) variables.push_back(variable.data());
    variables.push_back(nullptr);
    std::string program = SCENARIOS_PROGRAM, scenario = wanted.scenario;
    char* arguments[] = {program.data(), scenario.data(), nullptr};
    pid_t process = 0;
    int status = 0;
    if (posix_spawn(&process, program.c_str(), nullptr, nullptr, arguments, variables.data()) != 0) return -1;
    if (waitpid(process, &status, 0) != process || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

class Standin : public testing::TestWithParam<Case> {};

TEST_P(Standin, Does) {
    EXPECT_EQ(run(GetParam()), 0);
}

INSTANTIATE_TEST_SUITE_P(
    , Standin,
    testing::Values(Case{"kernels"}, Case{"kernels", {"STANDIN_GRID=real"}}, Case{"event_captures"}, Case{"elapsed_time"},
                    Case{"legacy_stream"}, Case{"stream_values"}, Case{"no_stream_values", {"STANDIN_NO_STREAM_VALUES=1"}},
                    Case{"host_function"}, Case{"pointers"}, Case{"many_devices", {"STANDIN_DEVICES=2"}},
                    Case{"many_devices", {"STANDIN_DEVICES=4", "CUDA_VISIBLE_DEVICES=3,1"}},
                    Case{"no_devices", {"STANDIN_DEVICES=0"}}, Case{"no_peer_access_in_kernel", {"STANDIN_DEVICES=2"}},
                    Case{"no_peer_access_in_copy", {"STANDIN_DEVICES=2"}}, Case{"out_of_range"}, Case{"use_after_free"},
                    Case{"read_only"}, Case{"host_touch", {"STANDIN_PROTECT=1"}}, Case{"host_touch_unseen"}, Case{"capture"},
                    Case{"pageable_copies"}, Case{"ipc"}, Case{"use_after_fork"}, Case{"pools"}, Case{"counters"},
                    Case{"injected_failures", {"STANDIN_FAIL=cudaMalloc:2,cudaStreamQuery:1"}},
                    Case{"injected_launch_failure", {"STANDIN_FAIL_LAUNCH=2"}}),
    [](const auto& info) { return info.param.scenario + "_" + std::to_string(info.index); });

TEST(StandinSeeds, RightProgramPassesUnderAll) {
    for (int seed = 1; seed <= seeds; seed++)
        for (const char* scenario : {"right_order", "event_captures", "legacy_stream", "stream_values"})
            ASSERT_EQ(run({scenario, {"STANDIN_SEED=" + std::to_string(seed)}}), 0) << scenario << ", seed " << seed;
}

TEST(StandinSeeds, MissingWaitIsCaught) {
    int caught = 0;
    testing::internal::CaptureStderr();
    for (int seed = 1; seed <= seeds; seed++) caught += run({"missing_wait", {"STANDIN_SEED=" + std::to_string(seed)}}) != 0;
    testing::internal::GetCapturedStderr();
    RecordProperty("caught", caught);
#ifdef __SANITIZE_THREAD__
    EXPECT_EQ(caught, seeds);
#else
    EXPECT_GE(caught, seeds / 2);
#endif
}

}  // namespace
