// The hub's judgement: what it says to whom when ranks die, fall silent, disagree or complain. Time is made up.
#include "monitor/hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "monitor/words.h"

namespace ringccl {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A hub with what it has said, rank by rank.
class World : private Hub::Lines {
public:
    explicit World(int size, milliseconds silence = seconds(30), int remote_from = 1)
        : size_(size), hub_(names(size), silence, *this, now_) {
        for (int rank = 0; rank < size; ++rank) hub_.joined(rank, rank < remote_from, now_);
    }

    static std::vector<std::string> names(int size) {
        std::vector<std::string> names;
        for (int rank = 0; rank < size; ++rank) names.push_back(name(rank));
        return names;
    }
    static std::string name(int rank) { return fmt::format("rank {} (process {} on node{})", rank, 4000 + rank, rank); }

    Hub& hub() { return hub_; }
    Hub::Clock::time_point now() const { return now_; }
    void hear(int rank, const json& message) { hub_.hear(rank, message, now_); }
    void end(int rank, const std::string& how = "") { hub_.ended(rank, how, now_); }
    // Lets time pass, with a tick whenever the hub wants one. `alive` beat all the time.
    void pass(milliseconds span, const std::vector<int>& alive = {}) {
        const auto until = now_ + span;
        for (;;) {
            auto next = hub_.tick(now_);
            EXPECT_GT(next, now_) << "the hub wants to be called in a circle";
            if (next > until) break;
            now_ = next;
            for (int rank : alive) hear(rank, {{"say", "beat"}});
        }
        now_ = until;
        hub_.tick(now_);
    }
    // Time passes unnoticed: the hub's process is stopped.
    void sleep(milliseconds span) {
        now_ += span;
        hub_.tick(now_);
    }

    // What was said to a rank since the last time, without beats.
    std::vector<json> said(int rank) {
        std::vector<json> all;
        for (json& message : std::exchange(said_[rank], {}))
            if (message["say"] != "beat") all.push_back(std::move(message));
        return all;
    }
    int beats(int rank) {
        int count = 0;
        for (const json& message : std::exchange(said_[rank], {})) count += message["say"] == "beat";
        return count;
    }
    std::vector<json> said(int rank, const std::string& kind) {
        std::vector<json> all;
        for (json& message : said(rank))
            if (message["say"] == kind) all.push_back(std::move(message));
        return all;
    }
    void forget() { said_.clear(); }
    bool hung_up(int rank) const { return hung_up_.contains(rank); }

    // The verdict, which all present ranks but `except` must have been told, once and alike.
    Status verdict(const std::vector<int>& except = {}) {
        std::vector<json> first;
        for (int rank = 0; rank < size_; ++rank) {
            if (std::find(except.begin(), except.end(), rank) != except.end()) continue;
            auto all = said(rank, "verdict");
            EXPECT_EQ(all.size(), 1u) << "rank " << rank;
            if (all.size() != 1) return {};
            if (first.empty()) first = all;
            EXPECT_EQ(all, first) << "rank " << rank;
        }
        return failure_in(first.front());
    }
    void expect_no_verdict() {
        for (int rank = 0; rank < size_; ++rank) EXPECT_THAT(said(rank, "verdict"), testing::IsEmpty()) << "rank " << rank;
    }

private:
    void say(int rank, const json& message) override { said_[rank].push_back(message); }
    void hang_up(int rank) override { hung_up_.insert(rank); }

    const int size_;
    Hub::Clock::time_point now_{seconds(1000)};
    std::map<int, std::vector<json>> said_;
    std::set<int> hung_up_;
    Hub hub_;
};

json failing(ringResult_t code, const std::string& text, bool echo = false) {
    return {{"say", "fail"}, {"code", static_cast<int>(code)}, {"failure", text}, {"echo", echo}};
}
json waiting(uint64_t sequence) {
    return {{"say", "wait"}, {"sequence", sequence}};
}
json late(const std::string& text, std::optional<uint64_t> sequence, std::vector<int> peers = {}) {
    json message = {{"say", "late"}, {"code", static_cast<int>(ringTimeout)}, {"failure", text}, {"peers", peers}};
    if (sequence) message["sequence"] = *sequence;
    return message;
}
Fingerprint print_of(uint64_t sequence, Kind kind = Kind::all_reduce, uint64_t count = 100) {
    Fingerprint print;
    print.sequence = sequence;
    print.kind = kind;
    print.count = count;
    print.type = ringFloat32;
    print.op = Op::sum;
    return print;
}
json in(uint64_t sequence, const Fingerprint& print) {
    return where_message(sequence, {sequence + 1, name_of(print), print});
}
json between(uint64_t asked, uint64_t begun) {
    return where_message(asked, {begun, "", std::nullopt});
}
using Ranks = std::vector<json>;
json told(const char* word, int rank) {
    return {{"say", word}, {"rank", rank}};
}

TEST(Hub, DeathIsToldToAllAtOnce) {
    World world(4);
    world.end(2);
    for (int rank : {0, 1, 3}) {
        auto said = world.said(rank);
        ASSERT_EQ(said.size(), 2u);
        EXPECT_EQ(said[0], told("lost", 2));
        EXPECT_EQ(said[1]["code"], static_cast<int>(ringRemoteError));
        EXPECT_EQ(
            said[1]["failure"],
            "rank 2 (process 4002 on node2) has died: its lifeline ended without a goodbye (killed, crashed, or it exited "
            "without ringCommDestroy)");
    }
    EXPECT_THAT(world.said(2), testing::IsEmpty());
    // The next death changes the verdict no more, but is known.
    world.end(3, "lost its connection (Connection timed out)");
    EXPECT_EQ(world.said(0), Ranks{told("lost", 3)});
    EXPECT_FALSE(world.hub().empty());
}

TEST(Hub, HowALineEndedIsTold) {
    World world(3);
    world.end(1, "lost its connection (Connection timed out)");
    EXPECT_THAT(world.verdict({1}).text(), EndsWith("; it lost its connection (Connection timed out))"));
}

TEST(Hub, GoodbyeIsNoDeath) {
    World world(3);
    world.hear(1, {{"say", "bye"}});
    EXPECT_TRUE(world.hung_up(1));
    world.end(1);
    for (int rank : {0, 2}) EXPECT_EQ(world.said(rank), Ranks{told("left", 1)});
    EXPECT_THAT(world.said(1), testing::IsEmpty());
    world.hear(1, failing(ringRemoteError, "too late"));  // who has left has no voice
    world.hear(0, {{"say", "bye"}});
    EXPECT_EQ(world.said(2), Ranks{told("left", 0)});
    EXPECT_FALSE(world.hub().empty());
    world.hear(2, {{"say", "bye"}});
    EXPECT_TRUE(world.hub().empty());
    EXPECT_TRUE(world.hub().complete());
    world.expect_no_verdict();
}

TEST(Hub, OwnFailureIsTheVerdictAtOnce) {
    struct {
        ringResult_t code;
        std::string text;
        ringResult_t told;
        std::string words;
    } cases[] = {
        {ringMismatch, "two things", ringMismatch, "two things"},
        {ringTimeout, "nothing moved", ringTimeout, "nothing moved"},
        {ringSystemError, "mmap: no memory", ringRemoteError, World::name(1) + " cannot go on: mmap: no memory"},
        {ringRemoteError, "rank 1 was aborted by ringCommAbort", ringRemoteError,
         World::name(1) + " was aborted by ringCommAbort"},
        {ringRemoteError, "rank 12 was odd", ringRemoteError, World::name(1) + " cannot go on: rank 12 was odd"},
    };
    for (auto& one : cases) {
        World world(3);
        world.hear(1, failing(one.code, one.text));
        Status verdict = world.verdict();  // the reporter has it too
        EXPECT_EQ(verdict.code(), one.told);
        EXPECT_EQ(verdict.text(), one.words);
        world.hear(2, failing(ringMismatch, "another"));
        world.expect_no_verdict();
    }
}

TEST(Hub, EchoWaitsForItsCause) {
    World world(3);
    world.hear(0, failing(ringRemoteError, "rank 2 closed its connection", true));
    world.expect_no_verdict();
    world.pass(milliseconds(100));
    world.end(2);
    EXPECT_THAT(world.verdict({2}).text(), StartsWith(World::name(2) + " has died"));
    world.pass(seconds(1));
    world.expect_no_verdict();
}

TEST(Hub, EchoBecomesTheVerdictInTheEnd) {
    World world(3);
    world.hear(0, failing(ringSystemError, "rank 2 closed its connection", true));
    world.hear(1, failing(ringRemoteError, "a second echo", true));
    world.pass(milliseconds(299));
    world.expect_no_verdict();
    world.pass(milliseconds(1));
    Status verdict = world.verdict();
    EXPECT_EQ(verdict.code(), ringRemoteError);
    EXPECT_EQ(verdict.text(), "rank 2 closed its connection");
}

TEST(Hub, EchoAsksWhetherTheRanksDiffer) {
    World world(3);
    json message = failing(ringRemoteError, "rank 2 closed its connection", true);
    message["sequence"] = 9;
    world.hear(0, message);
    EXPECT_EQ(world.said(1), Ranks({{{"say", "ask"}, {"sequence", 9}}}));
    for (int rank : {0, 1, 2}) world.hear(rank, in(9, print_of(9, rank == 2 ? Kind::barrier : Kind::reduce)));
    EXPECT_EQ(world.verdict().code(), ringMismatch);
}

TEST(Hub, SilenceIsDeath) {
    World world(4);
    world.pass(milliseconds(29000), {1, 3});
    world.expect_no_verdict();
    world.pass(milliseconds(8500), {1, 3});  // and a quarter
    EXPECT_TRUE(world.hung_up(2));
    auto said = world.said(3);
    ASSERT_EQ(said.size(), 2u);
    EXPECT_EQ(said[0], told("lost", 2));
    EXPECT_THAT(said[1]["failure"].get<std::string>(),
                AllOf(StartsWith(World::name(2) + " has not answered for 30.0 s"), HasSubstr("stopped")));
    auto last = world.said(2);  // for when it wakes up
    ASSERT_EQ(last.size(), 2u);
    EXPECT_EQ(last[0], said[1]);
    EXPECT_EQ(last[1]["say"], "bye");
    EXPECT_EQ(world.said(0, "verdict").size(), 1u);  // never silent: it is here
    world.pass(seconds(100), {1, 3});
    EXPECT_THAT(world.said(3), testing::IsEmpty());
}

TEST(Hub, BeatsFourTimesInTheSilence) {
    World world(3);
    world.pass(seconds(60), {1, 2});
    EXPECT_EQ(world.beats(1), 8);
    EXPECT_EQ(world.beats(0), 0);
}

TEST(Hub, WithoutHeartbeatNothingIsDueEver) {
    World world(3, milliseconds(0));
    EXPECT_EQ(world.hub().tick(world.now()), Hub::Clock::time_point::max());
    world.sleep(std::chrono::hours(10));
    world.expect_no_verdict();
}

TEST(Hub, ForgivesWhileItSleptItself) {
    World world(3);
    world.pass(seconds(5), {1, 2});
    world.sleep(seconds(100));
    world.expect_no_verdict();
    world.pass(seconds(29), {1});
    world.expect_no_verdict();
    world.pass(seconds(10), {1});  // but rank 2 does not come back
    EXPECT_THAT(world.verdict({2}).text(), StartsWith(World::name(2) + " has not answered"));
}

TEST(Hub, WaitingFindsWhoCallsSomethingElse) {
    World world(8);
    world.hear(3, waiting(17));
    for (int rank = 0; rank < 8; ++rank) EXPECT_EQ(world.said(rank), Ranks({{{"say", "ask"}, {"sequence", 17}}}));
    for (int rank = 0; rank < 7; ++rank) world.hear(rank, in(17, print_of(17, rank == 5 ? Kind::barrier : Kind::all_reduce)));
    world.expect_no_verdict();
    world.hear(7, between(17, 17));
    Status verdict = world.verdict();
    EXPECT_EQ(verdict.code(), ringMismatch);
    EXPECT_THAT(verdict.text(), AllOf(HasSubstr("allReduce on rank 0 but barrier on rank 5"), HasSubstr("(operation 17)")));
}

TEST(Hub, TheDeviantIsNamedEvenIfItIsRankZero) {
    World world(5);
    world.hear(1, waiting(0));
    for (int rank = 0; rank < 5; ++rank) world.hear(rank, in(0, print_of(0, Kind::all_reduce, rank == 0 ? 7 : 8)));
    EXPECT_THAT(world.verdict().text(), HasSubstr("the count is 7 on rank 0 but 8 on rank 1"));
}

TEST(Hub, OfSeveralDeviantsOneIsComparedWithTheMajority) {
    World world(6);
    world.hear(1, waiting(0));
    const uint64_t counts[] = {1, 2, 2, 2, 3, 3};
    for (int rank = 0; rank < 6; ++rank) world.hear(rank, in(0, print_of(0, Kind::gather, counts[rank])));
    EXPECT_THAT(world.verdict().text(), HasSubstr("the count is 1 on rank 0 but 2 on rank 1"));

    World other(6);
    other.hear(1, waiting(0));
    const uint64_t others[] = {1, 1, 2, 2, 2, 3};
    for (int rank = 0; rank < 6; ++rank) other.hear(rank, in(0, print_of(0, Kind::gather, others[rank])));
    EXPECT_THAT(other.verdict().text(), HasSubstr("the count is 2 on rank 2 but 3 on rank 5"));
}

TEST(Hub, WaitingWithoutDifferenceSaysNothing) {
    World world(3);
    world.hear(1, waiting(4));
    world.forget();
    world.hear(0, in(4, print_of(4)));
    world.hear(1, in(4, print_of(4)));
    world.hear(2, between(4, 4));
    world.pass(milliseconds(200), {});
    world.expect_no_verdict();
    // Asked again too early: put off.
    world.hear(1, waiting(4));
    world.hear(1, waiting(4));
    EXPECT_THAT(world.said(0), testing::IsEmpty());
    world.pass(milliseconds(50));
    EXPECT_EQ(world.said(0, "ask").size(), 1u);
    world.pass(milliseconds(400));
    EXPECT_THAT(world.said(0), testing::IsEmpty());
}

// Three ranks are an operation further, and one of them says so again before the fourth says where it is.
TEST(Hub, WhoSaysItAgainKeepsNobodyElseFromBeingAskedAbout) {
    World world(4);
    world.hear(0, waiting(1));
    for (int rank : {0, 1, 2}) world.hear(rank, in(1, print_of(1, Kind::barrier)));
    world.hear(3, between(1, 1));
    world.hear(1, waiting(1));
    world.hear(3, waiting(0));
    world.forget();
    world.pass(milliseconds(50));
    EXPECT_EQ(world.said(3), Ranks({{{"say", "ask"}, {"sequence", 0}}}));
    for (int rank = 0; rank < 4; ++rank) world.hear(rank, in(0, print_of(0, Kind::broadcast, rank == 3 ? 9 : 8)));
    EXPECT_EQ(world.verdict().code(), ringMismatch);
}

TEST(Hub, DifferenceIsFoundThoughOneRankIsSilent) {
    World world(4);
    world.hear(1, waiting(4));
    world.hear(0, in(4, print_of(4)));
    world.hear(1, in(4, print_of(4, Kind::broadcast)));
    world.hear(2, between(4, 4));
    world.pass(milliseconds(299));
    world.expect_no_verdict();
    world.pass(milliseconds(1));
    EXPECT_EQ(world.verdict().code(), ringMismatch);
}

TEST(Hub, WhoOwesAnAnswerIsAskedNoMore) {
    World world(3, milliseconds(0));
    int asked = 0;
    for (uint64_t sequence = 0; sequence < 100; ++sequence) {
        world.hear(0, waiting(sequence));
        for (int rank : {0, 1}) world.hear(rank, in(sequence, print_of(sequence)));
        asked += static_cast<int>(world.said(2, "ask").size());
        world.pass(milliseconds(1000));
    }
    EXPECT_EQ(asked, 1);
    world.expect_no_verdict();
    // It comes back, with an old answer, in the middle of a question.
    world.hear(0, waiting(200));
    for (int rank : {0, 1}) world.hear(rank, in(200, print_of(200)));
    world.hear(2, in(0, print_of(0, Kind::barrier)));
    EXPECT_EQ(world.said(2), Ranks({{{"say", "ask"}, {"sequence", 200}}}));
    world.expect_no_verdict();
    world.hear(2, in(200, print_of(200, Kind::barrier)));
    EXPECT_EQ(world.verdict().code(), ringMismatch);
}

TEST(Hub, LateSaysWhoIsMissing) {
    World world(8);
    world.hear(6, {{"say", "bye"}});
    world.pass(milliseconds(2000), {0, 1, 2, 3, 4, 5, 7});
    world.forget();
    world.hear(1, late("allReduce (operation 17) has not moved for 60.0 s", 17));
    EXPECT_EQ(world.said(3), Ranks({{{"say", "ask"}, {"sequence", 17}}}));
    for (int rank : {0, 1, 2}) world.hear(rank, in(17, print_of(17)));
    world.hear(3, between(17, 13));
    world.hear(4, where_message(17, {14, "allReduce (operation 13), waiting for rank 3", std::nullopt}));
    world.hear(7, between(17, 0));
    world.pass(milliseconds(300));
    Status verdict = world.verdict({6});
    EXPECT_EQ(verdict.code(), ringTimeout);
    EXPECT_EQ(verdict.text(),
              "allReduce (operation 17) has not moved for 60.0 s; not arrived: "
              "rank 3 (process 4003 on node3; last completed: operation 12; between operations), "
              "rank 4 (process 4004 on node4; in allReduce (operation 13), waiting for rank 3), "
              "rank 5 (process 4005 on node5; no answer for 2.3 s), "
              "rank 6 (process 4006 on node6; has left), "
              "rank 7 (process 4007 on node7; last completed: none; between operations)");
}

TEST(Hub, LateThoughAllHaveArrived) {
    World world(3);
    world.hear(1, late("slow", 2));
    for (int rank : {0, 1}) world.hear(rank, in(2, print_of(2)));
    world.hear(2, between(2, 9));
    EXPECT_EQ(world.verdict().text(),
              "slow; all ranks have arrived: rank 0 is in allReduce (operation 2); rank 1 is in allReduce (operation 2); "
              "rank 2 is between operations");
}

TEST(Hub, LateBecauseOfAMismatchIsAMismatch) {
    World world(3);
    world.hear(1, late("slow", 2));
    for (int rank : {0, 1, 2}) world.hear(rank, in(2, print_of(2, rank == 2 ? Kind::gather : Kind::scatter)));
    EXPECT_EQ(world.verdict().code(), ringMismatch);
}

TEST(Hub, LatePointToPointSaysWhatThePeersDo) {
    World world(4);
    world.hear(1, late("recv from rank 3 has not moved", std::nullopt, {3}));
    EXPECT_EQ(world.said(0), Ranks({{{"say", "ask"}}}));
    for (int rank : {0, 1, 2, 3}) world.hear(rank, where_message(std::nullopt, {rank == 3 ? 5u : 9u, "", std::nullopt}));
    EXPECT_EQ(world.verdict().text(),
              "recv from rank 3 has not moved; waited for: rank 3 (process 4003 on node3; last completed: operation 4; between "
              "operations)");
}

TEST(Hub, LateInALargeWorldStaysASentence) {
    World world(500);
    world.hear(1, late("slow", 2));
    world.pass(milliseconds(300));
    std::string text = world.verdict().text();
    EXPECT_THAT(text, AllOf(HasSubstr("rank 15 ("), Not(HasSubstr("rank 16 (")), EndsWith(" and 484 more")));
    EXPECT_LT(text.size(), 1500u);
}

TEST(Hub, LateTakesThePlaceOfALesserQuestion) {
    World world(3);
    world.hear(0, waiting(5));
    world.forget();
    world.hear(1, late("slow", 4));
    EXPECT_THAT(world.said(0), testing::IsEmpty());  // it owes the first answer
    for (int rank : {0, 1, 2}) world.hear(rank, between(5, 4));
    for (int rank : {0, 1, 2}) EXPECT_EQ(world.said(rank), Ranks({{{"say", "ask"}, {"sequence", 4}}}));
    for (int rank : {0, 1, 2}) world.hear(rank, between(4, 4));
    EXPECT_THAT(world.verdict().text(), StartsWith("slow; not arrived: rank 0"));
}

TEST(Hub, AnswersThatWaitedWithTheHubCount) {
    World world(3);
    world.hear(1, late("slow", 2));
    world.sleep(seconds(3));  // its process was stopped; the answers are there, but the clock came first
    world.expect_no_verdict();
    for (int rank : {0, 1}) world.hear(rank, in(2, print_of(2)));
    world.hear(2, between(2, 2));
    EXPECT_THAT(world.verdict().text(), HasSubstr("not arrived: rank 2"));
}

TEST(Hub, ADeathDuringAQuestionIsTheVerdict) {
    World world(3);
    world.hear(1, late("slow", 2));
    world.end(2);
    EXPECT_THAT(world.verdict({2}).text(), HasSubstr("has died"));
    world.pass(seconds(1));
    world.expect_no_verdict();
}

TEST(Hub, AGoodbyeDuringAQuestionCompletesIt) {
    World world(3);
    world.hear(1, late("slow", 2));
    for (int rank : {0, 1}) world.hear(rank, in(2, print_of(2)));
    world.hear(2, {{"say", "bye"}});
    EXPECT_THAT(world.verdict({2}).text(), HasSubstr("rank 2 (process 4002 on node2; has left)"));
}

TEST(Hub, WhoComesLateHearsWhatWas) {
    struct Ears : Hub::Lines {
        std::map<int, Ranks> said;
        void say(int rank, const json& message) override { said[rank].push_back(message); }
        void hang_up(int) override {}
    } ears;
    const Hub::Clock::time_point now{seconds(1000)};
    Hub hub(World::names(4), seconds(30), ears, now);
    for (int rank : {0, 1, 2}) hub.joined(rank, false, now);
    EXPECT_FALSE(hub.complete());
    hub.hear(1, {{"say", "bye"}}, now);
    hub.ended(2, "", now);
    EXPECT_TRUE(hub.joinable(3));
    hub.joined(3, false, now);
    EXPECT_FALSE(hub.joinable(3));
    EXPECT_FALSE(hub.joinable(2));
    EXPECT_TRUE(hub.complete());
    ASSERT_EQ(ears.said[3].size(), 3u);
    EXPECT_EQ(ears.said[3][0], told("left", 1));
    EXPECT_EQ(ears.said[3][1], told("lost", 2));
    EXPECT_EQ(ears.said[3][2]["say"], "verdict");
}

TEST(Hub, FarewellIfRankZeroHasLeft) {
    World stays(3);
    stays.hub().farewell(stays.now());
    for (int rank : {0, 1, 2}) EXPECT_THAT(stays.said(rank), testing::IsEmpty());

    World leaves(3);
    leaves.hear(0, {{"say", "bye"}});
    leaves.forget();
    leaves.hub().farewell(leaves.now());
    for (int rank : {1, 2}) EXPECT_EQ(leaves.said(rank), Ranks({{{"say", "bye"}}}));

    // Another rank of the process that ends has not left.
    World dies(4, seconds(30), 2);
    dies.hear(0, {{"say", "bye"}});
    dies.forget();
    dies.hub().farewell(dies.now());
    auto said = dies.said(3);
    ASSERT_EQ(said.size(), 3u);
    EXPECT_EQ(said[0], told("lost", 1));
    EXPECT_THAT(said[1]["failure"].get<std::string>(), HasSubstr("rank 1 (process 4001 on node1) has died"));
    EXPECT_EQ(said[2]["say"], "bye");
}

// Any message whatever is taken without harm, and no verdict comes of one that says nothing.
TEST(Hub, GarbageDoesNoHarm) {
    World world(3);
    const json odd[] = {nullptr, 7,    "fail",       json::array(), json::object(), -1,
                        1e300,   true, ~uint64_t{0}, {{"a", 1}},    {1, 2, 3, 4, 5}};
    for (int rank : {-1, 3, 1 << 30, 1}) {
        for (const json& one : odd) {
            world.hear(rank, one);
            for (const char* kind : {"beat", "fail", "late", "wait", "where", "ask", "verdict", "nonsense"}) {
                json message = {{"say", kind}};
                for (const char* key : {"code", "failure", "echo", "sequence", "peers", "begun", "doing", "asked"}) {
                    if (std::string(key) == "code") continue;
                    message[key] = one;
                    world.hear(rank, message);
                }
            }
        }
        world.end(rank == 1 ? -1 : rank);
    }
    world.pass(milliseconds(600));
    world.expect_no_verdict();
    world.hear(1, {{"say", "fail"}, {"code", 7777}, {"failure", std::string(100000, '\n')}});
    Status verdict = world.verdict();
    EXPECT_EQ(verdict.code(), ringRemoteError);
    EXPECT_LT(verdict.text().size(), 5000u);
    EXPECT_THAT(verdict.text(), Not(HasSubstr("\n")));
}

TEST(Hub, RandomTalkKeepsTheRules) {
    std::mt19937 random(11);
    for (int round = 0; round < 200; ++round) {
        World world(5, round % 2 ? milliseconds(400) : milliseconds(0));
        for (int step = 0; step < 60; ++step) {
            int rank = static_cast<int>(random() % 5);
            uint64_t sequence = random() % 3;
            switch (random() % 9) {
                case 0:
                    world.hear(rank, waiting(sequence));
                    break;
                case 1:
                    world.hear(rank, in(sequence, print_of(sequence)));
                    break;
                case 2:
                    world.hear(rank, between(sequence, sequence));
                    break;
                case 3:
                    if (random() % 8 == 0) world.hear(rank, late("slow", sequence));
                    break;
                case 4:
                    if (random() % 8 == 0) world.end(rank);
                    break;
                case 5:
                    if (random() % 8 == 0) world.hear(rank, {{"say", "bye"}});
                    break;
                case 6:
                    if (random() % 8 == 0) world.hear(rank, failing(ringRemoteError, "echo", true));
                    break;
                case 7:
                    world.pass(milliseconds(random() % 120), {0, 1, 2, 3, 4});
                    break;
                case 8:
                    if (random() % 20 == 0) world.sleep(milliseconds(random() % 2000));
                    break;
            }
        }
        for (int rank = 0; rank < 5; ++rank) EXPECT_LE(world.said(rank, "verdict").size(), 1u);
    }
}

}  // namespace
}  // namespace ringccl
