// ringccl-doctor's findings, from made-up dumps of four ranks.
#include "doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "trace/flight_recorder.h"

namespace ringccl::doctor {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using Cause = Diagnosis::Cause;

constexpr int64_t kSecond = 1000000, kNow = 1790000000 * kSecond;

// Four ranks that have done operations 0 to 16, the last 12.3 s ago.
class Doctor : public testing::Test {
protected:
    Doctor() {
        for (int rank = 0; rank < 4; ++rank) {
            json dump = {{"format", 1},
                         {"library", "0.1.0"},
                         {"communicator", "ab12cd34"},
                         {"rank", rank},
                         {"size", 4},
                         {"host", "node7"},
                         {"process", 4711 + rank},
                         {"time_us", kNow},
                         {"failure", nullptr},
                         {"begun", 0},
                         {"completed", 0},
                         {"operations", json::array()},
                         {"peers", json::array()}};
            for (int peer = 0; peer < 4; ++peer)
                if (peer != rank)
                    dump["peers"].push_back(
                        {{"rank", peer}, {"name", ""}, {"transport", "tcp"}, {"offered", 12}, {"received", 12}});
            dumps_[rank] = dump;
            for (int i = 0; i < 17; ++i) end(rank, begin(rank, call(), kNow - 12400000 - 1000 * (16 - i)), 100000);
        }
    }

    static json call(const char* kind = "allReduce", uint64_t count = 1000) {
        return {{"kind", kind}, {"type", "float32"}, {"op", "sum"}, {"count", count}, {"algorithm", "ring"}};
    }

    // The number of the operation in the dump.
    size_t begin(int rank, json call, int64_t at = kNow - 12 * kSecond) {
        json& dump = dumps_[rank];
        if (!call.contains("sequence")) {
            call["sequence"] = dump["begun"];
            dump["begun"] = dump["begun"].get<int>() + 1;
        }
        call["begin_us"] = at;
        call["end_us"] = call["result"] = call["waits_for"] = nullptr;
        dump["operations"].push_back(call);
        return dump["operations"].size() - 1;
    }
    size_t wait(int rank, int whom, json operation = call()) {
        const size_t at = begin(rank, std::move(operation));
        dumps_[rank]["operations"][at]["waits_for"] = whom;
        return at;
    }
    void end(int rank, size_t operation, int64_t took, const char* result = "ringSuccess") {
        json& ended = dumps_[rank]["operations"][operation];
        ended["end_us"] = ended["begin_us"].get<int64_t>() + took;
        ended["result"] = result;
        if (result == std::string("ringSuccess")) dumps_[rank]["completed"] = dumps_[rank]["completed"].get<int>() + 1;
    }
    void fail(int rank, int code, const char* name, const std::string& text) {
        dumps_[rank]["failure"] = {{"code", code}, {"name", name}, {"text", text}};
    }
    static json message(const char* kind, uint64_t sequence, int peer) {
        json made = call(kind, 5);
        made["op"] = "none";
        made["sequence"] = sequence;
        made["peer"] = peer;
        return made;
    }
    json& link(int rank, int peer) {
        for (json& each : dumps_[rank]["peers"])
            if (each["rank"] == peer) return each;
        throw std::logic_error("no such peer");
    }

    Diagnosis diagnosis() {
        std::vector<RankDump> dumps;
        for (const auto& [rank, dump] : dumps_) {
            auto read = read_dump("rank" + std::to_string(rank), dump);
            EXPECT_TRUE(read.ok()) << read.status().text();
            if (read.ok()) dumps.push_back(read.take());
        }
        auto result = diagnose(std::move(dumps));
        EXPECT_TRUE(result.ok()) << result.status().text();
        return result.ok() ? result.take() : Diagnosis();
    }

    std::map<int, json> dumps_;
};

TEST_F(Doctor, AllWell) {
    const auto found = diagnosis();
    EXPECT_EQ(found.cause, Cause::none);
    EXPECT_EQ(found.sentence, "all is well on all ranks: 17 operations completed, none running");
    ASSERT_EQ(found.rows.size(), 4u);
    EXPECT_EQ(found.rows[3].last, "allReduce (operation 16)");
    EXPECT_EQ(found.rows[3].in, "-");
    EXPECT_TRUE(found.notes.empty());
}

TEST_F(Doctor, AtWork) {
    for (int rank = 1; rank < 4; ++rank) begin(rank, call(), kNow - 300);
    EXPECT_EQ(diagnosis().cause, Cause::none);
    EXPECT_THAT(diagnosis().sentence, HasSubstr("3 ranks at work on the next"));
}

TEST_F(Doctor, Divergence) {
    for (int rank = 0; rank < 4; ++rank) wait(rank, (rank + 3) % 4, call("allReduce", rank == 2 ? 1001 : 1000));
    const auto found = diagnosis();
    EXPECT_EQ(found.cause, Cause::divergence);
    EXPECT_THAT(found.ranks, ElementsAre(2));
    EXPECT_EQ(
        found.sentence,
        "rank 2 diverged at operation 17: it called allReduce of 1001 float32 (sum) where ranks 0, 1 and 3 called allReduce of "
        "1000 float32 (sum) (the count is 1001, not 1000)");
}

TEST_F(Doctor, DivergenceOfEachField) {
    for (const auto& [field, value, text] : std::vector<std::tuple<const char*, json, const char*>>{
             {"kind", "allGather", "the operation is allGather, not allReduce"},
             {"type", "int8", "the type is int8, not float32"},
             {"op", "max", "the op is max, not sum"},
             {"root", 3, "the root is 3, not -1"}}) {
        const auto before = dumps_;
        for (int rank = 0; rank < 4; ++rank) begin(rank, call());
        dumps_[1]["operations"].back()[field] = value;
        EXPECT_THAT(diagnosis().sentence, AllOf(HasSubstr("rank 1 diverged at operation 17"), HasSubstr(text)));
        dumps_ = before;
    }
}

TEST_F(Doctor, HalfAgainstHalf) {
    for (int rank = 0; rank < 4; ++rank) begin(rank, call(rank < 2 ? "allReduce" : "allGather"));
    const auto found = diagnosis();
    EXPECT_EQ(found.cause, Cause::divergence);
    EXPECT_THAT(found.sentence,
                AllOf(HasSubstr("the ranks differ at operation 17"), HasSubstr("ranks 0 and 1 called allReduce"),
                      HasSubstr("ranks 2 and 3 called allGather")));
}

TEST_F(Doctor, DivergenceBecauseOfACallLeftOut) {
    for (int rank = 0; rank < 4; ++rank) {
        if (rank != 1) end(rank, begin(rank, call("broadcast", 5)), 10);
        wait(rank, (rank + 1) % 4, call("allReduce", 77));
    }
    const auto found = diagnosis();
    EXPECT_THAT(found.ranks, ElementsAre(1));
    EXPECT_THAT(found.sentence, HasSubstr("rank 1 diverged at operation 17"));
    EXPECT_THAT(found.notes,
                Contains("what rank 1 called as operation 17 is what ranks 0, 2 and 3 called as operation 18: a call may "
                         "have been left out"));
}

TEST_F(Doctor, MissingCall) {
    for (int rank = 0; rank < 3; ++rank) {
        end(rank, wait(rank, 3), 10 * kSecond, "ringTimeout");
        fail(rank, 8, "ringTimeout", "it has not moved");
    }
    const auto found = diagnosis();
    EXPECT_EQ(found.cause, Cause::missing_call);
    EXPECT_THAT(found.ranks, ElementsAre(3));
    EXPECT_EQ(
        found.sentence,
        "rank 3 has not called allReduce (operation 17), which all others are in; its last was allReduce (operation 16), which "
        "ended 12.3 s before its dump");
    EXPECT_THAT(found.notes, ElementsAre(HasSubstr("ranks 0, 1 and 2 report ringTimeout: it has not moved")));
    EXPECT_EQ(found.rows[0].waits_for, "3");
    EXPECT_EQ(found.rows[0].failure, "ringTimeout");
}

TEST_F(Doctor, MissingCallOfSeveralWhoNobodyHasFailedYet) {
    wait(0, 2);
    wait(1, 3);
    const auto found = diagnosis();
    EXPECT_EQ(found.cause, Cause::missing_call);
    EXPECT_THAT(found.ranks, ElementsAre(2, 3));
    EXPECT_THAT(found.sentence, HasSubstr("ranks 2 and 3 have not called allReduce (operation 17), which all others are in"));
}

TEST_F(Doctor, MissingDump) {
    dumps_.erase(3);
    const std::string text = "rank 3 (process 4714 on node7) has died: its lifeline ended without a goodbye";
    for (int rank = 0; rank < 3; ++rank) {
        end(rank, wait(rank, rank == 1 ? 0 : 3), kSecond, "ringRemoteError");
        fail(rank, 6, "ringRemoteError", text);
    }
    const auto found = diagnosis();
    EXPECT_EQ(found.cause, Cause::missing_dump);
    EXPECT_THAT(found.ranks, ElementsAre(3));
    EXPECT_EQ(found.sentence,
              "there is no dump of rank 3, which ranks 0 and 2 wait for in allReduce (operation 17): its process has died, or "
              "its dump "
              "was not collected");
    EXPECT_THAT(found.notes, ElementsAre(HasSubstr(text)));
    EXPECT_EQ(found.rows[3].last, "no dump");
}

TEST_F(Doctor, MissingDumpOfARankThatNobodyWaitsFor) {
    dumps_.erase(0);
    EXPECT_EQ(diagnosis().cause, Cause::missing_dump);
    EXPECT_THAT(diagnosis().sentence, AllOf(HasSubstr("all is well on ranks 1, 2 and 3"), HasSubstr("no dump of rank 0")));
}

TEST_F(Doctor, OwnFailureBeforeItsEchoes) {
    for (int rank = 0; rank < 4; ++rank) {
        end(rank, wait(rank, (rank + 1) % 4), rank == 2 ? 2000 : 1000, rank == 2 ? "ringSystemError" : "ringRemoteError");
        fail(rank, rank == 2 ? 2 : 6, rank == 2 ? "ringSystemError" : "ringRemoteError",
             rank == 2 ? "memfd_create: Too many open files" : "rank 2 cannot go on: memfd_create: Too many open files");
    }
    const auto found = diagnosis();
    EXPECT_EQ(found.cause, Cause::failure);
    EXPECT_THAT(found.ranks, ElementsAre(2));
    EXPECT_EQ(found.sentence,
              "rank 2 failed first, in allReduce (operation 17), with ringSystemError: memfd_create: Too many open files");
}

TEST_F(Doctor, TheFirstOfTwoFailures) {
    for (int rank : {1, 3}) {
        end(rank, wait(rank, 0), rank == 3 ? 1000 : 5000, "ringSystemError");
        fail(rank, 2, "ringSystemError", "failure of rank " + std::to_string(rank));
    }
    EXPECT_THAT(diagnosis().sentence, HasSubstr("rank 3 failed first"));
}

TEST_F(Doctor, MismatchOfMessagesIsOnlyInTheTexts) {
    for (int rank = 0; rank < 4; ++rank)
        fail(rank, 9, "ringMismatch", "the ranks call different things: the count is 1 on rank 0");
    EXPECT_THAT(diagnosis().sentence, HasSubstr("all ranks report ringMismatch: the ranks call different things"));
}

TEST_F(Doctor, WhatTheHubSaidComesBeforeGuesses) {
    for (int rank = 0; rank < 4; ++rank) fail(rank, 6, "ringRemoteError", "rank 3 was aborted by ringCommAbort");
    for (int rank = 0; rank < 3; ++rank) end(rank, wait(rank, 3), 1000, "ringRemoteError");
    EXPECT_EQ(diagnosis().sentence, "all ranks report ringRemoteError: rank 3 was aborted by ringCommAbort");
}

TEST_F(Doctor, StuckLink) {
    for (int rank = 0; rank < 4; ++rank) wait(rank, (rank + 3) % 4);
    link(1, 2)["offered"] = 15;
    const auto found = diagnosis();
    EXPECT_EQ(found.cause, Cause::stuck_link);
    EXPECT_THAT(found.ranks, ElementsAre(1, 2));
    EXPECT_EQ(
        found.sentence,
        "the tcp link from rank 1 to rank 2 does not move: rank 1 has offered 15 slices, rank 2 has received 12 and waits for "
        "more in allReduce (operation 17)");
}

TEST_F(Doctor, ChainToARankBetweenOperations) {
    wait(0, 1, message("recv", 3, 1));
    wait(1, 2, message("recv", 7, 2));
    const auto found = diagnosis();
    EXPECT_EQ(found.cause, Cause::wait);
    EXPECT_THAT(found.ranks, ElementsAre(2));
    EXPECT_EQ(
        found.sentence,
        "rank 0 waits for rank 1, which waits for rank 2, which is between operations: its last was allReduce (operation 16), "
        "which ended 12.3 s before its dump");
    EXPECT_EQ(found.rows[0].in, "recv (message 3) from rank 1");
}

TEST_F(Doctor, ChainToARankThatWaitsForNobody) {
    for (int rank = 1; rank < 4; ++rank) wait(rank, rank - 1);
    begin(0, call());
    const auto found = diagnosis();
    EXPECT_THAT(found.ranks, ElementsAre(0));
    EXPECT_THAT(found.sentence,
                HasSubstr("rank 3 waits for rank 2, which waits for rank 1, which waits for rank 0, which is in "
                          "allReduce (operation 17) and waits for nobody"));
}

TEST_F(Doctor, Circle) {
    wait(0, 1, message("recv", 0, 1));
    wait(1, 0, message("recv", 0, 0));
    const auto found = diagnosis();
    EXPECT_EQ(found.cause, Cause::wait);
    EXPECT_THAT(found.ranks, testing::UnorderedElementsAre(0, 1));
    EXPECT_THAT(found.sentence, HasSubstr("the ranks wait in a circle: "));
}

TEST_F(Doctor, Straggler) {
    for (int i = 0; i < 80; ++i)
        for (int rank = 0; rank < 4; ++rank)
            end(rank, begin(rank, call(), kNow - kSecond * (90 - i) + (rank == 1 ? 35000 : rank * 10)),
                rank == 1 ? 100 : 35100);
    const auto found = diagnosis();
    EXPECT_EQ(found.cause, Cause::straggler);
    EXPECT_THAT(found.ranks, ElementsAre(1));
    EXPECT_THAT(found.sentence, AllOf(HasSubstr("rank 1 is late: it began 64 of the last 64 operations last"),
                                      HasSubstr("35.0 ms after the others")));
}

TEST_F(Doctor, AnotherHostsClockIsNoStraggler) {
    for (int rank : {2, 3}) dumps_[rank]["host"] = "node8";
    for (int i = 0; i < 80; ++i)
        for (int rank = 0; rank < 4; ++rank)
            end(rank, begin(rank, call(), kNow - kSecond * (90 - i) + (rank == 3 ? 35000 : 0)), 100);
    EXPECT_EQ(diagnosis().cause, Cause::none);
    for (int rank : {2, 3}) dumps_[rank]["host"] = "node7";
    EXPECT_EQ(diagnosis().cause, Cause::straggler);
}

TEST_F(Doctor, WhatDoesNotBelongTogetherIsRefused) {
    const auto refused = [&] {
        std::vector<RankDump> dumps;
        for (const auto& [rank, dump] : dumps_) dumps.push_back(read_dump("file" + std::to_string(rank), dump).take());
        auto result = diagnose(std::move(dumps));
        EXPECT_FALSE(result.ok());
        return result.status().text();
    };
    dumps_[2]["communicator"] = "ffff";
    EXPECT_THAT(refused(), AllOf(HasSubstr("file2 is of ffff"), HasSubstr("ab12cd34")));
    dumps_[2]["communicator"] = "ab12cd34";
    dumps_[2]["size"] = 5;
    EXPECT_THAT(refused(), HasSubstr("5 ranks"));
    dumps_.clear();
    EXPECT_THAT(refused(), HasSubstr("no dumps"));
}

TEST_F(Doctor, OfTwoDumpsOfARankTheNewerCounts) {
    json old = dumps_[1];
    old["time_us"] = kNow - 1000 * kSecond;
    old["failure"] = {{"code", 2}, {"name", "ringSystemError"}, {"text", "long ago"}};
    dumps_[7] = old;
    const auto found = diagnosis();
    EXPECT_EQ(found.cause, Cause::none);
    EXPECT_THAT(found.notes, ElementsAre(HasSubstr("rank7 is older")));
}

TEST_F(Doctor, BadFilesAreNamed) {
    const auto why = [](const json& content) {
        const auto read = read_dump("some.json", content);
        EXPECT_FALSE(read.ok());
        EXPECT_THAT(read.status().text(), HasSubstr("some.json"));
        return read.status().text();
    };
    EXPECT_THAT(why(json::array()), HasSubstr("no \"format\""));
    json dump = dumps_[0];
    dump["format"] = 2;
    EXPECT_THAT(why(dump), HasSubstr("format 2"));
    dump = dumps_[0];
    dump.erase("begun");
    EXPECT_THAT(why(dump), HasSubstr("begun"));
    dump = dumps_[0];
    dump["operations"][3]["count"] = "many";
    EXPECT_THAT(why(dump), HasSubstr("no dump"));
    dump = dumps_[0];
    dump["rank"] = 4;
    EXPECT_THAT(why(dump), HasSubstr("rank 4 of 4"));
}

TEST_F(Doctor, PrintsATableAndJson) {
    for (int rank = 0; rank < 3; ++rank) wait(rank, 3);
    const auto found = diagnosis();
    const std::string text = to_text(found);
    EXPECT_THAT(text, testing::StartsWith(found.sentence + "\n"));
    EXPECT_THAT(text, HasSubstr("\n    0  allReduce (operation 16)  allReduce (operation 17)  3          -\n"));
    const json machine = to_json(found);
    EXPECT_EQ(machine["cause"], "missing call");
    EXPECT_EQ(machine["ranks"], json{3});
    EXPECT_EQ(machine["table"].size(), 4u);
}

// What the library writes is what is read here.
TEST_F(Doctor, ReadsWhatTheRecorderDumps) {
    std::vector<RankDump> dumps;
    for (int rank = 0; rank < 3; ++rank) {
        FlightRecorder recorder({"c", rank, 3, {"a", "b", "c"}, {"p2p", "p2p", "p2p"}});
        Operation operation;
        operation.print = {0, 8, Kind::broadcast, ringInt8, Op::none, 0, 1};
        recorder.end(recorder.begin(operation, "tree"), ringSuccess);
        operation.print = {1, 8, Kind::all_reduce, ringInt8, Op::max, 0, 0};
        if (rank == 1) operation.print.count = 9;
        recorder.waits_for(recorder.begin(operation, "ring"), (rank + 1) % 3);
        const json written = json::parse(recorder.dump(failure(ringTimeout, "late")).dump());
        auto read = read_dump("x", written);
        ASSERT_TRUE(read.ok()) << read.status().text();
        dumps.push_back(read.take());
    }
    EXPECT_EQ(dumps[2].operations[0].root, 1);
    auto found = diagnose(std::move(dumps));
    ASSERT_TRUE(found.ok());
    EXPECT_THAT(found.value().sentence, HasSubstr("rank 1 diverged at operation 1: it called allReduce of 9 int8 (max)"));
}

}  // namespace
}  // namespace ringccl::doctor
