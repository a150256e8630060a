// Lifelines over real sockets and within a process: who dies, leaves, falls silent or complains, and what the others hear.
// Ranks are threads with made-up process tokens, or real processes where one has to be stopped or killed.
#include "monitor/lifeline.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/fd.h"
#include "base/process.h"

#if defined(__SANITIZE_ADDRESS__)
// What a forked child has of its parent's is nobody's there, and is not freed.
namespace {
bool is_child = false;
}
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() {
    return is_child;
}
#endif

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

const std::atomic<bool> kNever{false};
constexpr seconds kSoon{20};  // far more than anything takes on an idle machine

// What a rank heard.
class Ear final : public Watched {
public:
    void doomed(const Status& verdict) override {
        std::lock_guard lock(mutex_);
        verdicts_.push_back(verdict);
        changed_.notify_all();
    }
    void left(int rank) override {
        std::lock_guard lock(mutex_);
        left_.push_back(rank);
        changed_.notify_all();
    }
    void lost(int rank) override {
        std::lock_guard lock(mutex_);
        lost_.push_back(rank);
        changed_.notify_all();
    }
    Whereabouts whereabouts(uint64_t) override {
        std::lock_guard lock(mutex_);
        return where_;
    }

    void at(Whereabouts where) {
        std::lock_guard lock(mutex_);
        where_ = std::move(where);
    }
    Status verdict() {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, kSoon, [&] { return !verdicts_.empty(); })) return {ringInternalError, "no verdict came"};
        return verdicts_.front();
    }
    bool hears(std::vector<int> Ear::*list, int rank) {
        std::unique_lock lock(mutex_);
        auto there = [&] { return std::find((this->*list).begin(), (this->*list).end(), rank) != (this->*list).end(); };
        return changed_.wait_for(lock, kSoon, there);
    }
    bool hears_left(int rank) { return hears(&Ear::left_, rank); }
    bool hears_lost(int rank) { return hears(&Ear::lost_, rank); }
    size_t verdicts() {
        std::lock_guard lock(mutex_);
        return verdicts_.size();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Status> verdicts_;
    std::vector<int> left_, lost_;
    Whereabouts where_;
};

std::string name(int rank) {
    return fmt::format("rank {} (process {} on node{})", rank, 4000 + rank, rank);
}

Settings settings_with(int64_t heartbeat_ms) {
    Settings settings;
    settings.heartbeat_ms = heartbeat_ms;
    return settings;
}

Secret new_secret() {
    Secret secret;
    EXPECT_TRUE(fill_random(secret).ok());
    return secret;
}

enum class Where { here, elsewhere, mixed };

Roster roster_of(int size, Where where) {
    Roster roster;
    for (int rank = 0; rank < size; ++rank) {
        const bool here = rank == 0 || where == Where::here || (where == Where::mixed && rank % 2 == 0);
        roster.names.push_back(name(rank));
        roster.process.push_back(here ? "hub's" : fmt::format("process of {}", rank));
    }
    return roster;
}

// All ranks of a communicator, tied.
struct World {
    World(int size, Where where, int64_t heartbeat_ms = 0, bool serve_late = false)
        : roster(roster_of(size, where)), settings(settings_with(heartbeat_ms)), ears(size), lines(size) {
        auto opened = HubPost::open(secret, settings);
        EXPECT_TRUE(opened.ok()) << opened.status().text();
        post = opened.take();
        card = post->card();
        if (!serve_late) post->serve(roster);
        std::vector<std::thread> threads;
        for (int rank = 0; rank < size; ++rank) threads.emplace_back([this, rank] { tie(rank); });
        if (serve_late) {
            std::this_thread::sleep_for(milliseconds(300));
            post->serve(roster);
        }
        for (auto& thread : threads) thread.join();
    }
    ~World() {
        for (auto& line : lines)
            if (line) line->leave();
    }

    void tie(int rank) {
        auto tied = Lifeline::tie(secret, rank, roster, card, settings, ears[rank], Deadline::after(kSoon), kNever);
        EXPECT_TRUE(tied.ok()) << tied.status().text();
        if (tied.ok()) lines[rank] = tied.take();
    }
    int size() const { return static_cast<int>(lines.size()); }

    // Every rank that is still tied has the same verdict, once.
    Status verdict() {
        Status first;
        for (int rank = 0; rank < size(); ++rank) {
            if (!lines[rank]) continue;
            Status mine = ears[rank].verdict();
            if (first.ok()) first = mine;
            EXPECT_EQ(mine.code(), first.code());
            EXPECT_EQ(mine.text(), first.text());
        }
        for (int rank = 0; rank < size(); ++rank) {
            if (lines[rank]) {
                EXPECT_EQ(ears[rank].verdicts(), 1u);
            }
        }
        return first;
    }

    Secret secret = new_secret();
    Roster roster;
    Settings settings;
    json card;
    std::deque<Ear> ears;
    std::unique_ptr<HubPost> post;
    std::vector<std::unique_ptr<Lifeline>> lines;
};

size_t entries(const char* directory) {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

int monitors() {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string name;
        std::getline(std::ifstream(entry.path() / "comm"), name);
        count += name == "ringccl-monitor";
    }
    return count;
}

bool soon(const std::function<bool()>& holds) {
    const Deadline deadline = Deadline::after(kSoon);
    while (!holds()) {
        if (deadline.passed()) return false;
        std::this_thread::sleep_for(milliseconds(5));
    }
    return true;
}

pid_t fork_child() {
    pid_t child = ::fork();
    if (child != 0) return child;
    ::alarm(60);
#if defined(__SANITIZE_ADDRESS__)
    is_child = true;
#endif
    return 0;
}

// Runs body in a child process, which ends by _exit with what body returns.
pid_t in_process(const std::function<int()>& body) {
    pid_t child = fork_child();
    if (child == 0) ::_exit(body());
    return child;
}

int end_of(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

class Lifelines : public testing::TestWithParam<Where> {};

TEST_P(Lifelines, LeaveNothingBehind) {
    {
        World warm(3, GetParam());
        EXPECT_EQ(monitors(), 1);
    }
    ASSERT_TRUE(soon([] { return monitors() == 0; })) << "the monitor's thread outlives the last lifeline";
    const size_t open = entries("/proc/self/fd");
    for (int i = 0; i < 20; ++i) {
        World world(4, GetParam(), 1000);
        for (auto& line : world.lines) {
            line->leave();
            line.reset();
        }
        for (Ear& ear : world.ears) EXPECT_EQ(ear.verdicts(), 0u);
        world.post.reset();
        if (GetParam() == Where::here) {
            EXPECT_EQ(monitors(), 0);
        }
    }
    EXPECT_TRUE(soon([] { return monitors() == 0; }));
    EXPECT_EQ(entries("/proc/self/fd"), open);
}

TEST_P(Lifelines, MayBeTiedBeforeTheHubServes) {
    World world(4, GetParam(), 0, true);
    world.lines[3]->failed({ringMismatch, "different"});
    EXPECT_EQ(world.verdict().text(), "different");
}

TEST_P(Lifelines, DeathIsHeard) {
    World world(5, GetParam());
    world.lines[2].reset();
    Status verdict = world.verdict();
    EXPECT_EQ(verdict.code(), ringRemoteError);
    EXPECT_THAT(verdict.text(), StartsWith(name(2) + " has died: its lifeline ended without a goodbye"));
    for (int rank : {0, 1, 3, 4}) EXPECT_TRUE(world.ears[rank].hears_lost(2)) << rank;
    world.lines[3].reset();
    for (int rank : {0, 1, 4}) EXPECT_TRUE(world.ears[rank].hears_lost(3)) << rank;
    EXPECT_EQ(world.verdict().text(), verdict.text());  // still only one
}

TEST_P(Lifelines, GoodbyeIsHeard) {
    World world(4, GetParam());
    world.lines[1]->leave();
    world.lines[1].reset();
    for (int rank : {0, 2, 3}) EXPECT_TRUE(world.ears[rank].hears_left(1)) << rank;
    world.lines[0]->leave();
    world.lines[0].reset();
    world.post.reset();
    for (int rank : {2, 3}) EXPECT_TRUE(world.ears[rank].hears_left(0)) << rank;
    for (int rank : {2, 3}) EXPECT_EQ(world.ears[rank].verdicts(), 0u) << rank;
    // The hub goes on.
    world.lines[2].reset();
    EXPECT_THAT(world.ears[3].verdict().text(), StartsWith(name(2) + " has died"));
}

TEST_P(Lifelines, VerdictsOfEveryKind) {
    const auto with = [&](auto body, int except = -1) {
        World world(4, GetParam());
        for (int rank = 0; rank < 4; ++rank) {
            Fingerprint print;
            print.sequence = 6;
            print.count = rank == except ? 5 : 4;
            world.ears[rank].at({rank == 3 ? 6u : 7u, rank == 3 ? "" : "barrier (operation 6), waiting for rank 3",
                                 rank == 3 ? std::nullopt : std::optional(print)});
        }
        body(*world.lines[1]);
        return world.verdict();
    };
    Status failed = with([](Lifeline& line) { line.failed({ringSystemError, "out of memory"}); });
    EXPECT_EQ(failed.code(), ringRemoteError);
    EXPECT_EQ(failed.text(), name(1) + " cannot go on: out of memory");
    Status echo = with([](Lifeline& line) { line.echo({ringRemoteError, "rank 2 closed its connection"}, {}); });
    EXPECT_EQ(echo.text(), "rank 2 closed its connection");
    Status late = with([](Lifeline& line) { line.late({ringTimeout, "slow"}, 6, {3}); });
    EXPECT_EQ(late.code(), ringTimeout);
    EXPECT_EQ(late.text(),
              "slow; not arrived: rank 3 (process 4003 on node3; last completed: operation 5; between operations)");
    Status pair = with([](Lifeline& line) { line.late({ringTimeout, "slow"}, std::nullopt, {2}); });
    EXPECT_THAT(pair.text(), StartsWith("slow; waited for: rank 2 (process 4002 on node2; in barrier (operation 6)"));
    const std::function<void(Lifeline&)> questions[] = {[](Lifeline& line) { line.waiting(6); },
                                                        [](Lifeline& line) { line.keep_waiting(6); },
                                                        [](Lifeline& line) {
                                                            line.echo({ringRemoteError, "gone"}, 6);
                                                        }};
    for (const auto& question : questions) {
        Status mismatch = with(question, 2);
        EXPECT_EQ(mismatch.code(), ringMismatch);
        EXPECT_THAT(mismatch.text(), HasSubstr("5 on rank 2"));
    }
}

TEST_P(Lifelines, SixtyFour) {
    World world(64, GetParam(), 30000);
    world.lines[40].reset();
    EXPECT_THAT(world.verdict().text(), StartsWith(name(40)));
}

// Nothing is heard after ~Lifeline, however much is being said.
TEST_P(Lifelines, EndInTheMiddleOfEverything) {
    for (int round = 0; round < 20; ++round) {
        World world(6, GetParam(), 20);
        std::vector<std::thread> threads;
        for (int rank = 0; rank < 6; ++rank)
            threads.emplace_back([&, rank] {
                for (uint64_t i = 0; i < 20; ++i) world.lines[rank]->waiting(i);
                if (rank % 3 == 0) world.lines[rank]->echo({ringRemoteError, "so it goes"}, {});
                if (rank % 3 == 1) world.lines[rank]->leave();
                world.lines[rank].reset();
                const size_t heard = world.ears[rank].verdicts();
                std::this_thread::sleep_for(milliseconds(2));
                EXPECT_EQ(world.ears[rank].verdicts(), heard);
            });
        if (round % 2 == 0) world.post.reset();
        for (auto& thread : threads) thread.join();
    }
}

INSTANTIATE_TEST_SUITE_P(, Lifelines, testing::Values(Where::here, Where::elsewhere, Where::mixed), [](const auto& info) {
    return info.param == Where::here ? "Local" : info.param == Where::elsewhere ? "Sockets" : "Mixed";
});

TEST(Lifeline, BeatsKeepItAlive) {
    World world(3, Where::elsewhere, 1500);
    std::this_thread::sleep_for(milliseconds(4000));
    for (Ear& ear : world.ears) EXPECT_EQ(ear.verdicts(), 0u);
}

TEST(Lifeline, WaitsForTheHubNoLongerThanItMay) {
    const Secret secret = new_secret();
    const Settings settings = settings_with(0);
    auto post = HubPost::open(secret, settings);
    ASSERT_TRUE(post.ok());
    Ear ear;
    std::atomic<bool> stop{true};
    for (Where where : {Where::here, Where::elsewhere}) {
        const Roster roster = roster_of(2, where);
        const auto tie = [&](Deadline deadline, const std::atomic<bool>& flag) {
            return Lifeline::tie(secret, 1, roster, post.value()->card(), settings, ear, deadline, flag).status();
        };
        Status late = tie(Deadline::after(milliseconds(300)), kNever);
        EXPECT_EQ(late.code(), ringTimeout);
        EXPECT_THAT(late.text(), HasSubstr("rank 1 was not tied to the hub at rank 0"));
        if (where == Where::elsewhere) {
            EXPECT_THAT(late.text(), HasSubstr("127.0.0.1:"));
        }
        EXPECT_EQ(tie(Deadline::after(kSoon), stop).code(), ringRemoteError);
    }
    Status odd =
        Lifeline::tie(secret, 1, roster_of(2, Where::elsewhere), {{"port", -1}}, settings, ear, Deadline::after(kSoon), kNever)
            .status();
    EXPECT_EQ(odd.code(), ringInternalError);
}

TEST(Lifeline, StrangersAreTurnedAwayAndThePortIsClosedInTheEnd) {
    const Secret secret = new_secret();
    const Settings settings = settings_with(0);
    auto opened = HubPost::open(secret, settings);
    ASSERT_TRUE(opened.ok());
    auto post = opened.take();
    const Roster roster = roster_of(2, Where::elsewhere);
    post->serve(roster);
    const auto knock = [&] {
        Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(post->card()["port"].get<uint16_t>());
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) fd.reset();
        return fd;
    };
    std::vector<Fd> silent;
    for (int i = 0; i < 20; ++i) silent.push_back(knock());
    Fd loud = knock();
    ASSERT_TRUE(loud);
    const std::string noise(100000, 'x');
    (void)!::send(loud.get(), noise.data(), noise.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    knock();
    // One that belongs to another communicator.
    Ear ears[2], other;
    auto wrong =
        Lifeline::tie(new_secret(), 1, roster, post->card(), settings, other, Deadline::after(milliseconds(300)), kNever);
    EXPECT_EQ(wrong.status().code(), ringTimeout);
    std::unique_ptr<Lifeline> lines[2];
    for (int rank : {0, 1}) {
        auto tied = Lifeline::tie(secret, rank, roster, post->card(), settings, ears[rank], Deadline::after(kSoon), kNever);
        ASSERT_TRUE(tied.ok()) << tied.status().text();
        lines[rank] = tied.take();
    }
    EXPECT_TRUE(soon([&] { return !knock(); })) << "the port is still open";
    lines[1].reset();
    EXPECT_THAT(ears[0].verdict().text(), StartsWith(name(1)));
}

// A child that starts threads when its parent had some is ended by ThreadSanitizer, and AddressSanitizer leaves it locks of its
// own that nobody will ever open.
class LifelineProcess : public testing::Test {
protected:
    void SetUp() override {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
        GTEST_SKIP() << "forks with threads";
#endif
    }
};

// A rank in a process of its own. The hub and the other ranks are here.
struct Split {
    explicit Split(int64_t heartbeat_ms) : settings(settings_with(heartbeat_ms)) {
        auto opened = HubPost::open(secret, settings);
        EXPECT_TRUE(opened.ok());
        post = opened.take();
        card = post->card();
        roster = roster_of(3, Where::mixed);  // rank 1 is elsewhere
    }
    std::unique_ptr<Lifeline> tie(int rank) {
        auto tied = Lifeline::tie(secret, rank, roster, card, settings, ears[rank], Deadline::after(kSoon), kNever);
        EXPECT_TRUE(tied.ok()) << tied.status().text();
        return tied.ok() ? tied.take() : nullptr;
    }
    void serve_and_tie() {
        post->serve(roster);
        lines[0] = tie(0);
        lines[2] = tie(2);
    }
    ~Split() {
        for (auto& line : lines)
            if (line) line->leave();
    }
    Secret secret = new_secret();
    Settings settings;
    json card;
    Roster roster;
    Ear ears[3];
    std::unique_ptr<HubPost> post;
    std::unique_ptr<Lifeline> lines[3];
};

TEST_F(LifelineProcess, KilledThoughItsChildLivesOn) {
    Split world(0);
    int ready[2], hold[2];
    ASSERT_EQ(::pipe(ready), 0);
    ASSERT_EQ(::pipe(hold), 0);
    pid_t rank1 = in_process([&] {
        auto line = world.tie(1);
        pid_t loader = in_process([&] {
            ::close(hold[1]);
            char byte;
            (void)!::read(hold[0], &byte, 1);  // until the test ends
            return 0;
        });
        (void)!::write(ready[1], &loader, sizeof loader);
        ::pause();
        return 0;
    });
    world.serve_and_tie();
    pid_t loader = 0;
    ASSERT_EQ(::read(ready[0], &loader, sizeof loader), static_cast<ssize_t>(sizeof loader));
    ::kill(rank1, SIGKILL);
    EXPECT_THAT(world.ears[2].verdict().text(), StartsWith(name(1) + " has died"));
    EXPECT_EQ(::kill(loader, 0), 0);
    end_of(rank1);
    for (int fd : {ready[0], ready[1], hold[0], hold[1]}) ::close(fd);
}

TEST_F(LifelineProcess, Stopped) {
    Split world(1000);
    pid_t rank1 = in_process([&] {
        auto line = world.tie(1);
        if (!line) return 1;
        ::raise(SIGSTOP);
        Status verdict = world.ears[1].verdict();  // waiting for it, when the process has been woken
        return verdict.text().starts_with(name(1) + " has not answered") ? 42 : 2;
    });
    world.serve_and_tie();
    for (int rank : {0, 2}) EXPECT_THAT(world.ears[rank].verdict().text(), StartsWith(name(1) + " has not answered for "));
    EXPECT_TRUE(world.ears[2].hears_lost(1));
    ::kill(rank1, SIGCONT);
    EXPECT_EQ(end_of(rank1), 42);
}

// The hub's process is the one that is stopped, killed, or ends.
struct Away {
    Away() {
        EXPECT_EQ(::pipe(cards), 0);
        EXPECT_EQ(::pipe(tied_all), 0);
        roster = roster_of(3, Where::elsewhere);
    }
    ~Away() {
        for (int fd : {cards[0], cards[1], tied_all[0], tied_all[1]}) ::close(fd);
    }
    // In the child: rank 0 and its hub; then, when all are tied, `body` with them.
    pid_t start(std::function<int(std::unique_ptr<HubPost>, std::unique_ptr<Lifeline>)> body) {
        pid_t child = in_process([&] {
            auto opened = HubPost::open(secret, settings);
            if (!opened.ok()) return 1;
            auto post = opened.take();
            post->serve(roster);
            std::string text = post->card().dump();
            (void)!::write(cards[1], text.data(), text.size());
            static Ear ear;
            auto tied = Lifeline::tie(secret, 0, roster, post->card(), settings, ear, Deadline::after(kSoon), kNever);
            if (!tied.ok()) return 2;
            char byte;
            (void)!::read(tied_all[0], &byte, 1);
            return body(std::move(post), tied.take());
        });
        char text[4096];
        ssize_t got = ::read(cards[0], text, sizeof text);
        json card = json::parse(std::string(text, got > 0 ? got : 0), nullptr, false);
        for (int rank : {1, 2}) {
            auto tied = Lifeline::tie(secret, rank, roster, card, settings, ears[rank], Deadline::after(kSoon), kNever);
            EXPECT_TRUE(tied.ok()) << tied.status().text();
            if (tied.ok()) lines[rank] = tied.take();
        }
        (void)!::write(tied_all[1], "", 1);
        return child;
    }
    Secret secret = new_secret();
    Settings settings = settings_with(1000);
    int cards[2], tied_all[2];
    Roster roster;
    Ear ears[3];
    std::unique_ptr<Lifeline> lines[3];
};

TEST_F(LifelineProcess, HubStopped) {
    Away world;
    pid_t child = world.start([](auto, auto) { return ::raise(SIGSTOP), ::pause(), 0; });
    for (int rank : {1, 2}) {
        EXPECT_THAT(world.ears[rank].verdict().text(), StartsWith(name(0) + " has not answered for "));
        EXPECT_TRUE(world.ears[rank].hears_lost(0));
    }
    ::kill(child, SIGKILL);
    end_of(child);
}

TEST_F(LifelineProcess, HubKilled) {
    Away world;
    pid_t child = world.start([](auto, auto) { return ::pause(), 0; });
    ::kill(child, SIGKILL);
    for (int rank : {1, 2}) {
        EXPECT_THAT(world.ears[rank].verdict().text(), StartsWith(name(0) + " has died"));
        EXPECT_TRUE(world.ears[rank].hears_lost(0));
    }
    end_of(child);
    // Nobody is left to ask.
    world.lines[1]->failed({ringTimeout, "again"});
    EXPECT_EQ(world.ears[1].verdicts(), 1u);
}

TEST_F(LifelineProcess, HubExitsWithoutAGoodbye) {
    Away world;
    pid_t child = world.start([](auto post, auto line) {
        new auto(std::move(post));  // as a program that destroys nothing
        new auto(std::move(line));
        std::exit(7);
        return 0;
    });
    for (int rank : {1, 2}) EXPECT_THAT(world.ears[rank].verdict().text(), StartsWith(name(0) + " has died"));
    EXPECT_EQ(end_of(child), 7);
}

// Killed between its rank's goodbye and its end, the hub's process takes nobody with it.
TEST_F(LifelineProcess, HubKilledAfterItsRankHasLeft) {
    Away world;
    pid_t child = world.start([](auto, auto line) {
        line->leave();
        ::pause();
        return 0;
    });
    for (int rank : {1, 2}) EXPECT_TRUE(world.ears[rank].hears_left(0));
    ::kill(child, SIGKILL);
    end_of(child);
    world.lines[1]->echo({ringRemoteError, "there is no hub"},
                         std::nullopt);  // heard after the end of the connection, or instead of a verdict
    EXPECT_EQ(world.ears[1].verdict().text(), "there is no hub");
    EXPECT_EQ(world.ears[2].verdicts(), 0u);
}

TEST_F(LifelineProcess, HubEndsAfterItsRankHasLeft) {
    Away world;
    pid_t child = world.start([](auto post, auto line) {
        line->leave();
        line.reset();
        post.reset();
        std::exit(7);
        return 0;
    });
    EXPECT_EQ(end_of(child), 7);
    for (int rank : {1, 2}) EXPECT_TRUE(world.ears[rank].hears_left(0));
    std::this_thread::sleep_for(milliseconds(2500));  // nor are they missed later
    for (int rank : {1, 2}) EXPECT_EQ(world.ears[rank].verdicts(), 0u);
    // Who complains now gets its own words, for there is nobody else to decide.
    world.lines[1]->late({ringTimeout, "slow"}, 3, {});
    EXPECT_EQ(world.ears[1].verdict().text(), "slow");
    EXPECT_EQ(world.ears[2].verdicts(), 0u);
}

// The child of a rank: it holds none of the sockets, disturbs nobody when it exits, and may have communicators of its own.
TEST_F(LifelineProcess, AForkedChildIsFree) {
    World world(4, Where::mixed, 2000);
    const auto sockets = [] {
        int count = 0;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            std::error_code gone;
            count += std::filesystem::read_symlink(entry, gone).string().starts_with("socket:");
        }
        return count;
    };
    EXPECT_TRUE(soon([&] { return sockets() == 4; }));  // two lines, both ends; the port is closed
    pid_t child = fork_child();
    if (child == 0) {
        if (sockets() != 0) ::_exit(1);
        world.lines[1]->failed({ringSystemError, "not mine to say"});
        world.lines[2]->leave();
        world.lines[3].reset();
        world.post.reset();
        {
            World own(3, Where::mixed);
            own.lines[1].reset();
            if (!own.verdict().text().starts_with(name(1))) ::_exit(2);
        }
        std::exit(HasFailure() ? 3 : 42);
    }
    EXPECT_EQ(end_of(child), 42);
    std::this_thread::sleep_for(milliseconds(100));
    for (Ear& ear : world.ears) EXPECT_EQ(ear.verdicts(), 0u);
    world.lines[3].reset();
    EXPECT_THAT(world.verdict().text(), StartsWith(name(3)));
}

}  // namespace
}  // namespace ringccl
