// The perf tools' command line, guard bands and launcher.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "perf/buffer.h"
#include "perf/host_place.h"
#include "perf/launcher.h"
#include "perf/options.h"

namespace ringccl::perf {
namespace {

std::optional<int> parse(std::vector<std::string> words, Options& options, const char* program = "allreduce_perf") {
    words.insert(words.begin(), program);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    return parse_options(static_cast<int>(words.size()), argv.data(), *find_collective(program), options);
}

// What a launcher of these tests may have set would change the defaults.
class PerfOptions : public testing::Test {
protected:
    void SetUp() override {
        for (const char* name : {"RINGCCL_RANK", "RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"})
            unsetenv(name);
    }
};

TEST_F(PerfOptions, Defaults) {
    Options options;
    ASSERT_FALSE(parse({}, options));
    EXPECT_EQ(options.sizes().front(), 8u);
    EXPECT_LE(options.sizes().back(), size_t{64} << 20);
    EXPECT_EQ(options.ranks, 2);
    EXPECT_EQ(options.types.size(), 1u);
    EXPECT_STREQ(options.types[0].name, "float");
    EXPECT_STREQ(options.operations[0].name, "sum");
}

TEST_F(PerfOptions, SizesAndSteps) {
    Options options;
    ASSERT_FALSE(parse({"-b", "1K", "-e", "4K", "-i", "1K"}, options));
    EXPECT_EQ(options.sizes(), (std::vector<size_t>{1024, 2048, 3072, 4096}));
    Options factor;
    ASSERT_FALSE(parse({"--minbytes", "1M", "--maxbytes", "1G", "-f", "32"}, factor));
    EXPECT_EQ(factor.sizes(), (std::vector<size_t>{1 << 20, 32 << 20, 1 << 30}));
    Options zero;
    ASSERT_FALSE(parse({"-b", "0", "-e", "0"}, zero));
    EXPECT_EQ(zero.sizes(), (std::vector<size_t>{0}));
    Options only_large;
    ASSERT_FALSE(parse({"-b", "1G"}, only_large));
    EXPECT_EQ(only_large.sizes(), (std::vector<size_t>{1 << 30}));
}

TEST_F(PerfOptions, RefusesNonsense) {
    for (std::vector<std::string> words : {std::vector<std::string>{"-b", "-1"},
                                           {"-b", "abc"},
                                           {"-e", "99999999999999999999"},
                                           {"-e", "1E"},
                                           {"-b", "2K", "-e", "1K"},
                                           {"-n", "0"},
                                           {"-o", "median"},
                                           {"-d", "float12"},
                                           {"-t", "0"},
                                           {"--ranks", "3", "-t", "2"},
                                           {"--ranks", "0"},
                                           {"-f", "2", "-i", "2"},
                                           {"-r", "1"},
                                           {"--memory", "tape"},
                                           {"--latency", "--stream"},
                                           {"--device", "tpu"},
                                           {"--device", "cuda", "--stream"},
                                           {"--device", "cuda", "--memory", "ring"},
                                           {"--device-index", "0"},
                                           {"--nonsense"}}) {
        Options options;
        testing::internal::CaptureStderr();
        auto code = parse(words, options);
        std::string said = testing::internal::GetCapturedStderr();
        ASSERT_TRUE(code) << words[0];
        EXPECT_NE(*code, 0) << words[0];
        EXPECT_FALSE(said.empty()) << words[0];
    }
}

TEST_F(PerfOptions, AllTypesAndOperations) {
    Options options;
    ASSERT_FALSE(parse({"-d", "all", "-o", "all"}, options));
    EXPECT_EQ(options.types.size(), 12u);
    EXPECT_EQ(options.operations.size(), 6u);
    Options some;
    ASSERT_FALSE(parse({"-d", "half,float64", "-o", "min,mulsum", "-t", "4"}, some));
    EXPECT_EQ(some.types[0].value, ringFloat16);
    EXPECT_EQ(some.types[1].value, ringFloat64);
    EXPECT_EQ(some.operations[1].reduction, Reduction::mulsum);
    EXPECT_EQ(some.ranks, 4) << "one process of four threads";
}

TEST_F(PerfOptions, ALauncherIsNoticedUnlessRanksAreGiven) {
    setenv("RANK", "0", 1);
    setenv("WORLD_SIZE", "4", 1);
    Options launched, own;
    ASSERT_FALSE(parse({}, launched));
    EXPECT_EQ(launched.ranks, 0);
    ASSERT_FALSE(parse({"--ranks", "3"}, own));
    EXPECT_EQ(own.ranks, 3);
}

TEST(PerfBuffer, GuardBandsNoticeEveryByte) {
    HostPlace host(false, false);
    Buffer buffer(1000, host);
    for (size_t used : {0u, 1u, 999u, 1000u}) {
        for (std::ptrdiff_t at : {std::ptrdiff_t{-4096}, std::ptrdiff_t{-1}, static_cast<std::ptrdiff_t>(used),
                                  static_cast<std::ptrdiff_t>(used) + 4095}) {
            buffer.guard(used);
            EXPECT_EQ(buffer.damage(used), 0u);
            buffer.data()[at] ^= std::byte{1};
            EXPECT_EQ(buffer.damage(used), 1u) << "used " << used << " at " << at;
        }
        buffer.guard(used);
        if (used) buffer.data()[used - 1] = std::byte{0};
        EXPECT_EQ(buffer.damage(used), 0u) << "what is used may change";
    }
}

std::string rank_name(int index) {
    return "rank " + std::to_string(index);
}

TEST(PerfLauncher, AllGoesWell) {
    IdPipe pipe;
    auto body = [&](int index) {
        ringUniqueId id{};
        if (index == 0) {
            id.internal[127] = 42;
            pipe.give(id, 4);
            return 0;
        }
        return pipe.take(id) && id.internal[127] == 42 ? 0 : 1;
    };
    EXPECT_EQ(run_processes(5, body, rank_name), 0);
}

TEST(PerfLauncher, NamesTheRankThatDied) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(run_processes(
                  3, [](int index) { return index == 1 ? raise(SIGKILL) : 0; }, rank_name),
              1);
    std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("rank 1"), said.npos) << said;
    EXPECT_NE(said.find("signal 9"), said.npos) << said;
    EXPECT_EQ(said.find("rank 2"), said.npos) << said;
}

// The others hang; they are given time for their last words, then ended.
TEST(PerfLauncher, EndsTheOthers) {
    testing::internal::CaptureStderr();
    auto begin = std::chrono::steady_clock::now();
    auto body = [](int index) {
        if (index == 2) return 1;
        for (;;) pause();
    };
    EXPECT_EQ(run_processes(4, body, rank_name), 1);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "a body that returns 1 has spoken itself";
}

}  // namespace
}  // namespace ringccl::perf
