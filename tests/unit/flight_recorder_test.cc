// The flight recorder: what it remembers, what it says, what it costs, and that readers never see half a record.
#include "trace/flight_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

namespace ringccl {
namespace {

using nlohmann::json;
using std::chrono::microseconds;
using std::chrono::system_clock;

FlightRecorder::Header header() {
    return {"ab12cd34",
            1,
            3,
            {"rank 0 (process 1 on a)", "rank 1 (process 2 on a)", "rank 2 (process 3 on b)"},
            {"p2p", "", "tcp"}};
}

Operation collective(uint64_t sequence, Kind kind = Kind::all_reduce, uint64_t count = 1000) {
    Operation operation;
    operation.print = {sequence, count, kind, ringFloat32, Op::sum, 0, kind == Kind::broadcast ? 2 : 0};
    return operation;
}

Operation message(uint64_t sequence, int peer, bool receives) {
    static int memory;
    Operation operation;
    operation.print = {sequence, 5, Kind::send, ringInt64, Op::none, 0, 0};
    operation.peer = peer;
    (receives ? operation.recv : *const_cast<void**>(&operation.send)) = &memory;
    return operation;
}

int64_t unix_us() {
    return std::chrono::duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

TEST(FlightRecorder, NothingYet) {
    FlightRecorder recorder(header());
    EXPECT_EQ(recorder.begun(), 0u);
    EXPECT_EQ(recorder.completed(), 0u);
    EXPECT_EQ(recorder.doing(), "");
    EXPECT_FALSE(recorder.print_of(0));
    const json dump = recorder.dump({});
    EXPECT_TRUE(dump["operations"].empty());
    EXPECT_TRUE(dump["failure"].is_null());
}

TEST(FlightRecorder, CountsAndWords) {
    FlightRecorder recorder(header());
    const auto first = recorder.begin(collective(0), "ring");
    EXPECT_EQ(recorder.begun(), 1u);
    EXPECT_EQ(recorder.completed(), 0u);
    EXPECT_EQ(recorder.doing(), "allReduce (operation 0)");
    recorder.waits_for(first, 2);
    EXPECT_EQ(recorder.doing(), "allReduce (operation 0), waiting for rank 2");
    recorder.end(first, ringSuccess);
    EXPECT_EQ(recorder.completed(), 1u);
    EXPECT_EQ(recorder.doing(), "");

    const auto sent = recorder.begin(message(7, 2, false), "direct"), received = recorder.begin(message(3, 0, true), "direct");
    EXPECT_EQ(recorder.begun(), 1u) << "messages have numbers of their own";
    EXPECT_EQ(recorder.doing(), "send (message 7) to rank 2");
    recorder.end(sent, ringSuccess);
    EXPECT_EQ(recorder.doing(), "recv (message 3) from rank 0");
    recorder.end(received, ringTimeout);
    EXPECT_EQ(recorder.completed(), 2u) << "a failed one does not count";
}

TEST(FlightRecorder, FindsCollectivesByNumber) {
    FlightRecorder recorder(header());
    for (uint64_t i = 0; i < 300; ++i) {
        if (i % 3 == 0) recorder.end(recorder.begin(message(i, 0, true), "direct"), ringSuccess);
        recorder.end(recorder.begin(collective(i, Kind::broadcast, 10 * i), "tree"), ringSuccess);
    }
    EXPECT_EQ(recorder.begun(), 300u);
    EXPECT_FALSE(recorder.print_of(300));
    for (uint64_t number : {0, 10, 299}) {
        const auto print = recorder.print_of(number);
        ASSERT_TRUE(print) << "others may be that far behind";
        EXPECT_EQ(*print, collective(number, Kind::broadcast, 10 * number).print);
    }
}

// Calls that all differ are forgotten one by one; equal ones in a row count once, however many they are.
TEST(FlightRecorder, RemembersPrintsForLong) {
    FlightRecorder recorder(header());
    const uint64_t last = PrintHistory::kRuns + 300;
    for (uint64_t i = 0; i < last; ++i) recorder.begin(collective(i, Kind::broadcast, 10 * i), "tree");
    EXPECT_FALSE(recorder.print_of(299)) << "long forgotten";
    EXPECT_FALSE(recorder.print_of(300)) << "its place may be written to at any moment";
    for (uint64_t number : {uint64_t{301}, uint64_t{40000}, last - 1}) {
        const auto print = recorder.print_of(number);
        ASSERT_TRUE(print) << number;
        EXPECT_EQ(*print, collective(number, Kind::broadcast, 10 * number).print);
    }
    for (uint64_t i = last; i < 3 * last; ++i) recorder.begin(collective(i, Kind::barrier, 0), "star");
    for (uint64_t number : {uint64_t{310}, last - 1, last, 2 * last, 3 * last - 1}) {
        const auto print = recorder.print_of(number);
        ASSERT_TRUE(print) << number;
        EXPECT_EQ(print->sequence, number);
        EXPECT_EQ(print->kind, number < last ? Kind::broadcast : Kind::barrier);
    }
    EXPECT_FALSE(recorder.print_of(3 * last));
}

// Whoever asks while the writer goes on gets the right answer or none.
TEST(FlightRecorder, PrintsAreReadWhileTheyAreWritten) {
    FlightRecorder recorder(header());
    std::atomic<bool> enough{false};
    std::thread writer([&] {
        for (uint64_t i = 0; !enough; ++i) recorder.begin(collective(i, Kind::broadcast, 10 * i), "tree");
    });
    int found = 0, wrong = 0;
    for (uint64_t round = 0; found < 2000 || recorder.begun() < 2 * PrintHistory::kRuns; ++round) {
        // Half of them at the edge, where the writer is about to reuse the place.
        const uint64_t back = round % 2 == 0 ? round * 7919 % PrintHistory::kRuns : PrintHistory::kRuns - round % 64;
        const uint64_t begun = recorder.begun(), number = begun - std::min(begun, back);
        const auto print = recorder.print_of(number);
        if (!print) continue;
        ++found;
        if (!(*print == collective(number, Kind::broadcast, 10 * number).print)) ++wrong;
    }
    enough = true;
    writer.join();
    EXPECT_EQ(wrong, 0) << "of " << found;
}

TEST(FlightRecorder, DumpSaysEverything) {
    FlightRecorder recorder(header());
    const int64_t before = unix_us();
    recorder.end(recorder.begin(collective(0, Kind::broadcast), "tree"), ringSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto failed = recorder.begin(collective(1), "ring");
    recorder.waits_for(failed, 0);
    recorder.end(failed, ringTimeout);
    recorder.waits_for(recorder.begin(message(4, 2, true), "direct"), 2);
    FlightRecorder::Progress::count(recorder.progress(2).offered);
    FlightRecorder::Progress::count(recorder.progress(2).offered);
    FlightRecorder::Progress::count(recorder.progress(0).received);
    const json dump = recorder.dump(failure(ringTimeout, "it took too long"));
    const int64_t after = unix_us();

    EXPECT_EQ(dump["format"], 1);
    EXPECT_EQ(dump["communicator"], "ab12cd34");
    EXPECT_EQ(dump["rank"], 1);
    EXPECT_EQ(dump["size"], 3);
    EXPECT_EQ(dump["process"], getpid());
    EXPECT_FALSE(dump["host"].get<std::string>().empty());
    EXPECT_EQ(dump["failure"], (json{{"code", 8}, {"name", "ringTimeout"}, {"text", "it took too long"}}));
    EXPECT_EQ(dump["begun"], 2);
    EXPECT_EQ(dump["completed"], 1);
    EXPECT_EQ(
        dump["peers"],
        (json{{{"rank", 0}, {"name", "rank 0 (process 1 on a)"}, {"transport", "p2p"}, {"offered", 0}, {"received", 1}},
              {{"rank", 2}, {"name", "rank 2 (process 3 on b)"}, {"transport", "tcp"}, {"offered", 2}, {"received", 0}}}));

    const json& operations = dump["operations"];
    ASSERT_EQ(operations.size(), 3u);
    EXPECT_EQ(operations[0]["kind"], "broadcast");
    EXPECT_EQ(operations[0]["type"], "float32");
    EXPECT_EQ(operations[0]["count"], 1000);
    EXPECT_EQ(operations[0]["root"], 2);
    EXPECT_EQ(operations[0]["algorithm"], "tree");
    EXPECT_EQ(operations[0]["result"], "ringSuccess");
    EXPECT_TRUE(operations[0]["waits_for"].is_null());
    EXPECT_EQ(operations[1]["op"], "sum");
    EXPECT_FALSE(operations[1].contains("root"));
    EXPECT_EQ(operations[1]["result"], "ringTimeout");
    EXPECT_EQ(operations[1]["waits_for"], 0);
    EXPECT_EQ(operations[2]["kind"], "recv");
    EXPECT_EQ(operations[2]["sequence"], 4);
    EXPECT_EQ(operations[2]["peer"], 2);
    EXPECT_TRUE(operations[2]["end_us"].is_null());
    EXPECT_EQ(operations[2]["waits_for"], 2);

    // Real time, to within what reading two clocks one after the other costs.
    const auto us = [&](const json& value) { return value.get<int64_t>(); };
    constexpr int64_t kSlack = 2000;
    EXPECT_GE(us(operations[0]["begin_us"]), before - kSlack);
    EXPECT_LE(us(operations[0]["begin_us"]), us(operations[0]["end_us"]));
    EXPECT_GE(us(operations[1]["begin_us"]) - us(operations[0]["end_us"]), 20000 - kSlack);
    EXPECT_LE(us(operations[1]["end_us"]), us(dump["time_us"]));
    EXPECT_LE(us(dump["time_us"]), after + kSlack);
}

TEST(FlightRecorder, AnOldRecordIsNotTouchedAgain) {
    FlightRecorder recorder(header());
    const auto old = recorder.begin(collective(0), "ring");
    for (uint64_t i = 1; i <= FlightRecorder::kRemembered; ++i) recorder.begin(collective(i), "ring");
    recorder.waits_for(old, 2);
    recorder.end(old, ringSuccess);
    EXPECT_EQ(recorder.completed(), 1u);
    const json dump = recorder.dump({});
    EXPECT_EQ(dump["operations"].size(), FlightRecorder::kRemembered);
    for (const json& operation : dump["operations"]) {
        EXPECT_TRUE(operation["end_us"].is_null());
        EXPECT_TRUE(operation["waits_for"].is_null());
    }
}

// Every field of a record is made of its sequence number, so a mixture of two records shows.
TEST(FlightRecorder, ReadersSeeWholeRecordsWhileTheWriterRuns) {
    FlightRecorder recorder(header());
    std::jthread writer([&](std::stop_token stop) {
        for (uint64_t i = 0; !stop.stop_requested(); ++i) {
            Operation operation = collective(i, i % 2 == 0 ? Kind::broadcast : Kind::reduce, 3 * i);
            operation.print.root = static_cast<int32_t>(i % 1000);
            recorder.end(recorder.begin(operation, i % 2 == 0 ? "tree" : "ring"), ringSuccess);
        }
    });
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    size_t seen = 0, found = 0;
    while (std::chrono::steady_clock::now() < until) {
        const json dump = recorder.dump({});
        for (const json& operation : dump["operations"]) {
            const uint64_t i = operation["sequence"];
            ASSERT_EQ(operation["count"], 3 * i);
            ASSERT_EQ(operation["root"], i % 1000);
            ASSERT_EQ(operation["kind"], i % 2 == 0 ? "broadcast" : "reduce");
            ASSERT_EQ(operation["algorithm"], i % 2 == 0 ? "tree" : "ring");
            ++seen;
        }
        (void)recorder.doing();
        // Those that are about to be overwritten are the hard ones.
        for (uint64_t back = 0; back < FlightRecorder::kRemembered; ++back) {
            const uint64_t begun = recorder.begun(), i = begun - std::min(begun, back);
            if (const auto print = recorder.print_of(i)) {
                ASSERT_EQ(print->count, 3 * i);
                ASSERT_EQ(print->root, static_cast<int32_t>(i % 1000));
                ++found;
            }
        }
    }
    EXPECT_GT(seen, 100u);
    EXPECT_GT(found, 100u);
}

// Printed for whoever wonders; the limit only catches a lock or a system call on the way.
TEST(FlightRecorder, Cost) {
    FlightRecorder recorder(header());
    const Operation operation = collective(0);
    constexpr int kTimes = 100000;
    double best = 1e9;
    for (int round = 0; round < 20; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < kTimes; ++i) recorder.end(recorder.begin(operation, "ring"), ringSuccess);
        const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
        best = std::min(best, took.count() / kTimes);
    }
    RecordProperty("begin_and_end_ns", std::to_string(best));
    std::printf("begin and end of one operation: %.1f ns\n", best);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    EXPECT_LT(best, 500);
#endif
}

}  // namespace
}  // namespace ringccl
