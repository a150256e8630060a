// Timelines: what is in the file, and that it can be read whatever happens to those who write it.
#include "trace/timeline.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/fd.h"

namespace ringccl {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using testing::HasSubstr;

class TimelineTest : public testing::Test {
protected:
    TimelineTest() {
        char name[] = "/tmp/ringccl-timeline-XXXXXX";
        folder_ = ::mkdtemp(name);
        file_ = folder_ + "/trace.json";
    }
    ~TimelineTest() override { std::filesystem::remove_all(folder_); }

    std::unique_ptr<Timeline> open(int rank, const std::string& communicator = "ab12cd34") {
        auto opened = Timeline::open(file_, communicator, rank, 8);
        EXPECT_TRUE(opened.ok()) << opened.status().text();
        return opened.ok() ? opened.take() : nullptr;
    }

    // All events; fails if the file is not JSON but for its closing bracket, or if two events of a row overlap.
    std::vector<json> events() { return events(file_); }
    static std::vector<json> events(const std::string& file) {
        std::ifstream stream(file);
        std::string text{std::istreambuf_iterator<char>(stream), {}};
        EXPECT_TRUE(text.ends_with(",\n")) << "..." << text.substr(text.size() > 100 ? text.size() - 100 : 0);
        if (text.size() < 2) return {};
        text.replace(text.size() - 2, 2, "]");
        const json all = json::parse(text, nullptr, false);
        EXPECT_TRUE(all.is_array()) << text.substr(0, 300);
        if (!all.is_array()) return {};
        std::map<std::pair<int64_t, int64_t>, double> ends;
        for (const json& event : all) {
            if (event["ph"] != "X") continue;
            double& end = ends.try_emplace({event["pid"], event["tid"]}, 0).first->second;
            EXPECT_GE(event["ts"].get<double>(), end - 0.0005) << event;
            EXPECT_GE(event["dur"].get<double>(), 0) << event;
            end = event["ts"].get<double>() + event["dur"].get<double>();
        }
        return all.get<std::vector<json>>();
    }
    static std::vector<json> of(const std::vector<json>& events, const char* category) {
        std::vector<json> chosen;
        for (const json& event : events)
            if (event.value("cat", "") == category) chosen.push_back(event);
        return chosen;
    }
    static std::map<int64_t, std::string> rows(const std::vector<json>& events) {
        std::map<int64_t, std::string> names;
        for (const json& event : events)
            if (event["name"] == "thread_name") names[event["tid"]] = event["args"]["name"];
        return names;
    }
    static std::set<std::string> ranks(const std::vector<json>& events) {
        std::set<std::string> names;
        for (const json& event : events)
            if (event["name"] == "process_name") names.insert(event["args"]["name"].get<std::string>());
        return names;
    }

    std::string folder_, file_;
};

Operation all_reduce(uint64_t sequence) {
    Operation operation;
    operation.print = {sequence, 1000, Kind::all_reduce, ringFloat32, Op::sum, 0, 0};
    return operation;
}

// A time so many microseconds after the first call.
Timeline::Ticks at(double us) {
    static const Timeline::Ticks begin = Timeline::now();
    static const double per_us = [] {
        (void)TickScale::now();  // the rate is measured from here
        std::this_thread::sleep_for(milliseconds(10));
        return 1000 / TickScale::now().ns_per_tick();
    }();
    return begin + static_cast<Timeline::Ticks>(us * per_us);
}

void operations(Timeline& timeline, int count) {
    for (int i = 0; i < count; ++i)
        timeline.operation(all_reduce(static_cast<uint64_t>(i)), "ring", Timeline::now(), Timeline::now(), ringSuccess);
}

void finish(pid_t child) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

void make_old(const std::string& file) {
    const timespec times[2] = {{1000000000, 0}, {1000000000, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
}

TEST_F(TimelineTest, WhatARankDid) {
    at(0);
    auto timeline = open(3);
    timeline->received(2, 0, all_reduce(17).print, 4096, at(10), at(30));
    timeline->sent(4, 0, all_reduce(17).print, 4096, at(20), at(50));
    timeline->slept(at(12), at(28));
    timeline->operation(all_reduce(17), "ring", at(5), at(60), ringSuccess);
    Operation message;
    message.print = {2, 1, Kind::send, ringInt8, Op::none, 0, 0};
    message.recv = &message;
    message.peer = 5;
    timeline->operation(message, "direct", at(70), at(80), ringTimeout);
    timeline.reset();

    const auto all = events();
    EXPECT_EQ(ranks(all), (std::set<std::string>{"rank 3 of 8, communicator ab12cd34"}));
    std::vector<std::string> names;
    for (const auto& [row, name] : rows(all)) names.push_back(name);
    EXPECT_THAT(names, testing::ElementsAre("operations", "waiting", "from rank 2, lane 0", "to rank 4, lane 0"));

    const auto done = of(all, "operation");
    ASSERT_EQ(done.size(), 2u);
    EXPECT_EQ(done[0]["name"], "allReduce 17");
    EXPECT_NEAR(done[0]["dur"].get<double>(), 55, 1);
    EXPECT_EQ(done[0]["args"]["bytes"], 4000);
    EXPECT_EQ(done[0]["args"]["algorithm"], "ring");
    EXPECT_EQ(done[0]["args"]["result"], "ringSuccess");
    EXPECT_EQ(done[1]["name"], "recv 2 from rank 5");
    EXPECT_EQ(done[1]["args"]["result"], "ringTimeout");
    EXPECT_NEAR(done[1]["ts"].get<double>() - done[0]["ts"].get<double>(), 65, 1);

    const auto slices = of(all, "slice");
    ASSERT_EQ(slices.size(), 2u);
    EXPECT_EQ(slices[0]["args"]["operation"], "allReduce 17");
    EXPECT_NEAR(slices[1]["dur"].get<double>(), 30, 1);
    const auto sleeps = of(all, "sleep");
    ASSERT_EQ(sleeps.size(), 1u);
    EXPECT_NEAR(sleeps[0]["dur"].get<double>(), 16, 1);
}

TEST_F(TimelineTest, OperationsThatOverlapGetRowsOfTheirOwn) {
    at(0);
    auto timeline = open(0);
    for (int round = 0; round < 10; ++round) {
        const double begin = 1000 * round;
        timeline->operation(all_reduce(0), "ring", at(begin), at(begin + 100), ringSuccess);
        timeline->operation(all_reduce(1), "ring", at(begin + 10), at(begin + 110), ringSuccess);
        timeline->operation(all_reduce(2), "ring", at(begin + 20), at(begin + 500), ringSuccess);
        timeline->operation(all_reduce(3), "ring", at(begin + 501), at(begin + 600), ringSuccess);
    }
    timeline.reset();
    const auto all = events();
    std::vector<std::string> names;
    for (const auto& [row, name] : rows(all)) names.push_back(name);
    EXPECT_THAT(names, testing::ElementsAre("operations", "operations (2)", "operations (3)"));
    const auto done = of(all, "operation");
    EXPECT_EQ(done.size(), 40u);
    EXPECT_EQ(done[3]["tid"], 0);
}

TEST_F(TimelineTest, SlicesInAQueueAreDrawnOneAfterTheOther) {
    at(0);
    auto timeline = open(0);
    for (int i = 0; i < 8; ++i) timeline->sent(1, 2, all_reduce(0).print, 1, at(i), at(100 + 10 * i));
    timeline.reset();
    const auto slices = of(events(), "slice");
    ASSERT_EQ(slices.size(), 8u);
    EXPECT_NEAR(slices[7]["dur"].get<double>(), 10, 0.5);
    EXPECT_NEAR(slices[7]["args"]["queued_us"].get<double>(), 153, 0.5);
}

TEST_F(TimelineTest, CommunicatorsOfOneProcessStayApart) {
    auto first = open(3), second = open(3, "ffff0000");
    operations(*first, 1);
    operations(*second, 1);
    first.reset();
    second.reset();
    const auto done = of(events(), "operation");
    ASSERT_EQ(done.size(), 2u);
    EXPECT_NE(done[0]["pid"], done[1]["pid"]);
}

TEST_F(TimelineTest, ManyProcessesAppend) {
    constexpr int kProcesses = 4, kEach = 5000;
    std::vector<pid_t> children;
    for (int rank = 0; rank < kProcesses; ++rank) {
        const pid_t child = ::fork();
        if (child == 0) {
            {
                auto timeline = open(rank);
                operations(*timeline, kEach);
            }
            ::_exit(HasFailure());
        }
        children.push_back(child);
    }
    for (pid_t child : children) finish(child);
    const auto all = events();
    EXPECT_EQ(ranks(all).size(), 4u);
    EXPECT_EQ(of(all, "operation").size(), size_t{kProcesses} * kEach);
}

TEST_F(TimelineTest, KilledWritersSpoilNothing) {
    open(0);
    for (int round = 0; round < 10; ++round) {
        const auto before = std::filesystem::file_size(file_);
        const pid_t child = ::fork();
        if (child == 0) {
            auto timeline = open(round % 8);
            while (true) operations(*timeline, 1000);  // until it is killed
        }
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (std::filesystem::file_size(file_) < before + 100000 && std::chrono::steady_clock::now() < until)
            std::this_thread::sleep_for(std::chrono::microseconds(200 + 37 * round));
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
    }
    { std::ofstream(file_, std::ios::app) << "{\"name\":\"allRed"; }
    open(0);
    EXPECT_GT(of(events(), "operation").size(), 1000u);
}

TEST_F(TimelineTest, AnEarlierJobsFileIsBegunAnew) {
    operations(*open(0), 5);
    open(1);
    EXPECT_EQ(ranks(events()).size(), 2u) << "of this job: appended";
    make_old(file_);
    operations(*open(2), 1);
    EXPECT_THAT(ranks(events()), testing::ElementsAre("rank 2 of 8, communicator ab12cd34"));
    EXPECT_EQ(of(events(), "operation").size(), 1u);
}

TEST_F(TimelineTest, AFileInUseIsNotBegunAnew) {
    auto first = open(0);
    make_old(file_);
    const pid_t child = ::fork();
    if (child == 0) {
        first.release();  // stays the parent's
        open(1);
        ::_exit(HasFailure());
    }
    finish(child);
    EXPECT_EQ(ranks(events()).size(), 2u);
}

TEST_F(TimelineTest, AForkedChildWritesNothingOfItsParents) {
    auto timeline = open(0);
    operations(*timeline, 10);
    const pid_t child = ::fork();
    if (child == 0) {
        timeline.reset();
        ::_exit(0);
    }
    finish(child);
    timeline.reset();
    EXPECT_EQ(of(events(), "operation").size(), 10u);
}

TEST_F(TimelineTest, OtherFilesAreLeftAlone) {
    { std::ofstream(file_) << "precious\n"; }
    make_old(file_);
    auto opened = Timeline::open(file_, "c", 0, 1);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.status().code(), ringInvalidUsage);
    EXPECT_THAT(opened.status().text(), HasSubstr(file_));
    EXPECT_EQ(std::filesystem::file_size(file_), 9u);

    opened = Timeline::open("/dev/null", "c", 0, 1);
    ASSERT_FALSE(opened.ok());
    EXPECT_THAT(opened.status().text(), HasSubstr("no regular file"));

    opened = Timeline::open(folder_ + "/none/trace", "c", 0, 1);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.status().code(), ringSystemError);
    EXPECT_THAT(opened.status().text(), HasSubstr("No such file"));
}

TEST_F(TimelineTest, AFileForEachRank) {
    const std::string pattern = folder_ + "/%r-of-%r";
    for (int rank : {0, 12}) EXPECT_TRUE(Timeline::open(pattern, "c", rank, 13).ok());
    EXPECT_EQ(ranks(events(folder_ + "/12-of-12")).size(), 1u);
    EXPECT_EQ(ranks(events(folder_ + "/0-of-0")).size(), 1u);
}

// Somebody is stopped while he has the file locked: the ranks go on, and what they did is written later.
TEST_F(TimelineTest, ALockedFileStopsNobody) {
    auto timeline = open(0);
    Fd other(::open(file_.c_str(), O_RDWR));
    struct flock all {};
    all.l_type = F_WRLCK;
    all.l_whence = SEEK_SET;
    all.l_start = (off_t{1} << 61) + 1;
    all.l_len = 1;
    ASSERT_EQ(::fcntl(other.get(), F_OFD_SETLK, &all), 0) << std::strerror(errno);
    const auto begin = std::chrono::steady_clock::now();
    operations(*timeline, 2000);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
    EXPECT_EQ(of(events(), "operation").size(), 0u);
    other.reset();
    timeline.reset();
    EXPECT_EQ(of(events(), "operation").size(), 2000u);
}

TEST_F(TimelineTest, AFullDiskEndsItAndLeavesItReadable) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{300000, 300000};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        {
            auto timeline = open(0);
            operations(*timeline, 10000);
        }
        ::_exit(HasFailure());
    }
    finish(child);
    const size_t done = of(events(), "operation").size();
    EXPECT_GT(done, 100u);
    EXPECT_LT(done, 10000u);
}

TEST_F(TimelineTest, Cost) {
    auto timeline = open(0);
    const auto begin = std::chrono::steady_clock::now();
    operations(*timeline, 100000);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    std::printf("one operation in the timeline: %.0f ns\n", took.count() / 100000);
}

}  // namespace
}  // namespace ringccl
