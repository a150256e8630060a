// The perf tools' table: nccl-tests' 13 fields first and in its order, so that scripts which read that table read this one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "perf/report.h"

namespace ringccl::perf {
namespace {

using testing::HasSubstr;

class PerfReport : public testing::Test {
protected:
    static Measurement measurement(double seconds, double bandwidth, uint64_t wrong) {
        Measurement measured;
        measured.seconds = seconds;
        measured.algorithm_bandwidth = bandwidth;
        measured.bus_bandwidth = bandwidth * 1.5;
        measured.wrong = wrong;
        measured.cpu_seconds = 0.002;
        measured.sent_bytes = 6e6;
        measured.latency = {1e-3, 2e-3, 3e-3};
        return measured;
    }

    // What a report of these rows prints, without the header.
    std::string print(Report& report, std::optional<Measurement> in_place) {
        testing::internal::CaptureStdout();
        report.row(row_, measurement(2e-3, 2.0, 0), in_place);
        report.footer();
        return testing::internal::GetCapturedStdout();
    }

    static std::vector<std::string> fields(const std::string& text) {
        std::istringstream words(text.substr(0, text.find('\n')));
        return {std::istream_iterator<std::string>(words), {}};
    }

    Options options_;
    Case row_{*find_type("float"), *find_operation("sum"), 0, 1000000, 4000000};
};

TEST_F(PerfReport, ThirteenFields) {
    Report report(*find_collective("allreduce_perf"), options_, 4);
    auto all = fields(print(report, measurement(1e-3, 4.0, 0)));
    ASSERT_GE(all.size(), 13u);
    all.resize(13);
    EXPECT_THAT(all, testing::ElementsAre("4000000", "1000000", "float", "sum", "-1", "2000.0", "2.00", "3.00", "0", "1000.0",
                                          "4.00", "6.00", "0"));
    EXPECT_TRUE(report.right());
}

TEST_F(PerfReport, CostsFollow) {
    options_.latency = true;
    Report report(*find_collective("allreduce_perf"), options_, 4);
    auto all = fields(print(report, std::nullopt));
    ASSERT_EQ(all.size(), 19u);
    all.erase(all.begin(), all.begin() + 9);
    // No in-place form; p50, p99, maximum; CPU seconds per GB, bytes sent, and 2(N-1)/N times the message.
    EXPECT_THAT(all,
                testing::ElementsAre("N/A", "N/A", "N/A", "N/A", "1000.0", "2000.0", "3000.0", "0.500", "6000000", "6000000"));
}

TEST_F(PerfReport, ClosingLines) {
    Report right(*find_collective("allreduce_perf"), options_, 4);
    std::string text = print(right, measurement(1e-3, 4.0, 0));
    EXPECT_THAT(text, HasSubstr("# Out of bounds values : 0 OK\n"));
    EXPECT_THAT(text, HasSubstr("# Avg bus bandwidth    : 4.5\n"));
    EXPECT_THAT(text, HasSubstr("Every element of every result was right"));

    Report wrong(*find_collective("allreduce_perf"), options_, 4);
    text = print(wrong, measurement(1e-3, 4.0, 7));
    EXPECT_THAT(text, HasSubstr("# Out of bounds values : 7 FAILED\n"));
    EXPECT_FALSE(wrong.right());

    options_.check = false;
    Report unchecked(*find_collective("allreduce_perf"), options_, 4);
    EXPECT_THAT(print(unchecked, std::nullopt), HasSubstr("were not checked"));
}

TEST_F(PerfReport, Json) {
    Report report(*find_collective("allreduce_perf"), options_, 4);
    print(report, std::nullopt);
    std::string name = testing::TempDir() + "perf_report_test.json";
    ASSERT_TRUE(report.write_json(name));
    auto json = nlohmann::json::parse(std::ifstream(name));
    std::remove(name.c_str());
    EXPECT_EQ(json["program"], "allreduce_perf");
    EXPECT_EQ(json["rows"][0]["out_of_place"]["wrong"], 0);
    EXPECT_FALSE(json["rows"][0].contains("in_place"));
    EXPECT_FALSE(report.write_json("/nonexistent/folder/file.json"));
}

}  // namespace
}  // namespace ringccl::perf
