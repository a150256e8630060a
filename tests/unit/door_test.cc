// Doors: ranks that connect to each other while strangers knock.
#include "bootstrap/door.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>

namespace ringccl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

const std::atomic<bool> kNever{false};
const Presence kEverybody(64);

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr double kSlack = 4;
#else
constexpr double kSlack = 1;
#endif

std::unique_ptr<Door> door(const Secret& secret, int rank, const std::string& interface = "") {
    Settings settings;
    settings.interface = interface;
    auto opened = Door::open(secret, rank, settings);
    EXPECT_TRUE(opened.ok()) << opened.status().text();
    return opened.take();
}

Secret new_secret() {
    Secret secret;
    EXPECT_TRUE(fill_random(secret).ok());
    return secret;
}

Endpoint loopback(const Door& door) {
    for (const Endpoint& one : door.endpoints())
        if (one.address == "127.0.0.1") return one;
    return {};
}

double seconds_of(const std::function<void()>& body) {
    auto begin = std::chrono::steady_clock::now();
    body();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Two connected ends carry a byte each way.
void expect_joined(const Fd& a, const Fd& b) {
    EXPECT_TRUE(::fcntl(a.get(), F_GETFL) & O_NONBLOCK);
    EXPECT_TRUE(::fcntl(b.get(), F_GETFL) & O_NONBLOCK);
    for (auto [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
        char sent = 'x', got = 0;
        EXPECT_EQ(::write(from->get(), &sent, 1), 1);
        pollfd ready{to->get(), POLLIN, 0};
        EXPECT_EQ(::poll(&ready, 1, 2000), 1);
        EXPECT_EQ(::read(to->get(), &got, 1), 1);
        EXPECT_EQ(got, 'x');
    }
}

// A blocking plain connection to a door, as a stranger makes it.
Fd knock(const Endpoint& at) {
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(at.port);
    ::inet_pton(AF_INET, at.address.c_str(), &to.sin_addr);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return fd;
}

std::string read_exactly(int fd, size_t bytes) {
    std::string text(bytes, '\0');
    ssize_t got = ::recv(fd, text.data(), bytes, MSG_WAITALL);
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return text;
}

// Rank 0's door accepts, rank 1's dials, for `sockets` connections on each of two lanes.
void meet_both(Door& acceptor, Door& dialer, int sockets = 1) {
    std::vector<Wish> in, out;
    for (int lane = 0; lane < 2; ++lane)
        for (int index = 0; index < sockets; ++index) {
            in.push_back({1, lane, index, false, {}});
            out.push_back({0, lane, index, true, acceptor.endpoints()});
        }
    std::vector<Fd> accepted, dialed;
    std::thread other([&] {
        auto met = dialer.meet(out, kEverybody, Deadline::after(seconds(10)), kNever);
        ASSERT_TRUE(met.ok()) << met.status().text();
        dialed = met.take();
    });
    auto met = acceptor.meet(in, kEverybody, Deadline::after(seconds(10)), kNever);
    other.join();
    ASSERT_TRUE(met.ok()) << met.status().text();
    accepted = met.take();
    ASSERT_EQ(accepted.size(), dialed.size());
    for (size_t i = 0; i < accepted.size(); ++i) expect_joined(accepted[i], dialed[i]);
}

TEST(Door, LanesAndIndexesEndUpWhereTheyBelong) {
    Secret secret = new_secret();
    auto a = door(secret, 0), b = door(secret, 1);
    meet_both(*a, *b, 8);
    meet_both(*a, *b, 2);  // and again, over the same doors
    EXPECT_EQ(a->strangers(), 0u);
}

TEST(Door, NoWishNoWait) {
    auto a = door(new_secret(), 0);
    EXPECT_LT(seconds_of([&] { EXPECT_TRUE(a->meet({}, kEverybody, Deadline::after(seconds(10)), kNever).ok()); }), 0.1);
}

TEST(Door, AFullMeshOfRanksMeets) {
    constexpr int kRanks = 8;
    Secret secret = new_secret();
    std::vector<std::unique_ptr<Door>> doors;
    for (int rank = 0; rank < kRanks; ++rank) doors.push_back(door(secret, rank));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
        threads.emplace_back([&, rank] {
            std::vector<Wish> wishes;
            for (int peer = 0; peer < kRanks; ++peer)
                if (peer != rank) wishes.push_back({peer, 0, 0, rank < peer, doors[peer]->endpoints()});
            auto met = doors[rank]->meet(wishes, kEverybody, Deadline::after(seconds(10)), kNever);
            EXPECT_TRUE(met.ok()) << met.status().text();
        });
    for (std::thread& thread : threads) thread.join();
}

TEST(Door, ThePeerMayBeLate) {
    Secret secret = new_secret();
    auto a = door(secret, 0), b = door(secret, 1);
    Wish in{1, 0, 0, false, {}}, out{0, 0, 0, true, a->endpoints()};
    std::thread early([&] { EXPECT_TRUE(b->meet({&out, 1}, kEverybody, Deadline::after(seconds(10)), kNever).ok()); });
    std::this_thread::sleep_for(milliseconds(2500));  // longer than a stranger may take
    EXPECT_TRUE(a->meet({&in, 1}, kEverybody, Deadline::after(seconds(10)), kNever).ok());
    early.join();
    EXPECT_EQ(a->strangers(), 0u);
}

// What arrives during a meeting that is about something else is not lost, whatever stage it is in when that meeting ends.
TEST(Door, EarlyArrivalsAreKept) {
    Secret secret = new_secret();
    auto a = door(secret, 0), b = door(secret, 1), c = door(secret, 2);
    for (int round = 0; round < 200; ++round) {
        Wish b_out{0, 0, round, true, {loopback(*a)}}, c_out{0, 0, round, true, {loopback(*a)}};
        Wish b_in{1, 0, round, false, {}}, c_in{2, 0, round, false, {}};
        Fd from_b, from_c;
        std::thread first([&] {
            auto met = b->meet({&b_out, 1}, kEverybody, Deadline::after(seconds(10)), kNever);
            if (met.ok()) from_b = std::move(met.value()[0]);
        });
        std::thread second([&] {
            auto met = c->meet({&c_out, 1}, kEverybody, Deadline::after(seconds(10)), kNever);
            if (met.ok()) from_c = std::move(met.value()[0]);
        });
        auto with_b = a->meet({&b_in, 1}, kEverybody, Deadline::after(seconds(10)), kNever);
        auto with_c = a->meet({&c_in, 1}, kEverybody, Deadline::after(seconds(10)), kNever);
        first.join();
        second.join();
        ASSERT_TRUE(with_b.ok() && with_c.ok() && from_b && from_c) << "round " << round;
        expect_joined(with_b.value()[0], from_b);
        expect_joined(with_c.value()[0], from_c);
    }
    EXPECT_EQ(a->strangers(), 0u);
}

TEST(Door, DeadAddressesAreSteppedOver) {
    Secret secret = new_secret();
    auto a = door(secret, 0), b = door(secret, 1);
    Fd silent(::socket(AF_INET, SOCK_STREAM, 0));  // takes connections and says nothing
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::bind(silent.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    ASSERT_EQ(::listen(silent.get(), 8), 0);
    socklen_t bytes = sizeof at;
    ::getsockname(silent.get(), reinterpret_cast<sockaddr*>(&at), &bytes);

    Wish in{1, 0, 0, false, {}};
    Wish out{0, 0, 0, true, {{"127.0.0.1", 1}, {"fe80::1%nowhere", 5}, {"127.0.0.1", ntohs(at.sin_port)}, loopback(*a)}};
    std::thread other([&] { EXPECT_TRUE(b->meet({&out, 1}, kEverybody, Deadline::after(seconds(10)), kNever).ok()); });
    EXPECT_LT(seconds_of([&] { EXPECT_TRUE(a->meet({&in, 1}, kEverybody, Deadline::after(seconds(10)), kNever).ok()); }), 0.5);
    other.join();
}

TEST(Door, TimeoutsListWhoIsMissingAndWhatWasTried) {
    auto a = door(new_secret(), 0);
    Wish wishes[] = {{1, 2, 0, true, {{"127.0.0.1", 1}}}, {2, 2, 0, false, {}}};
    double span = seconds_of([&] {
        Status status = a->meet(wishes, kEverybody, Deadline::after(milliseconds(300)), kNever).status();
        EXPECT_EQ(status.code(), ringTimeout);
        EXPECT_THAT(status.text(),
                    AllOf(HasSubstr("rank 1"), HasSubstr("127.0.0.1:1 (Connection refused)"), HasSubstr("rank 2")));
    });
    EXPECT_LT(span, 0.5);
}

TEST(Door, StopEndsTheWait) {
    auto a = door(new_secret(), 0);
    std::atomic<bool> stop{false};
    Wish wish{1, 0, 0, false, {}};
    std::thread later([&] {
        std::this_thread::sleep_for(milliseconds(100));
        stop = true;
    });
    double span = seconds_of([&] {
        EXPECT_EQ(a->meet({&wish, 1}, kEverybody, Deadline::after(seconds(10)), stop).status().code(), ringRemoteError);
    });
    later.join();
    EXPECT_LT(span, 0.2);
}

TEST(Door, AnotherJobsRankIsAStranger) {
    auto a = door(new_secret(), 0), other = door(new_secret(), 1);
    Wish in{1, 0, 0, false, {}}, out{0, 0, 0, true, {loopback(*a)}};
    std::thread dialing([&] {
        Status status = other->meet({&out, 1}, kEverybody, Deadline::after(milliseconds(300)), kNever).status();
        EXPECT_EQ(status.code(), ringTimeout);
        EXPECT_THAT(status.text(), HasSubstr("turned us away"));
    });
    EXPECT_EQ(a->meet({&in, 1}, kEverybody, Deadline::after(milliseconds(400)), kNever).status().code(), ringTimeout);
    dialing.join();
    EXPECT_GE(a->strangers(), 1u);
}

// Ours, but at a door that is not the one it looks for: no connection, and no stranger either.
TEST(Door, ARankAtTheWrongDoorIsSentOn) {
    Secret secret = new_secret();
    auto a = door(secret, 0), b = door(secret, 1), c = door(secret, 2);
    Wish in{1, 0, 0, false, {}}, out{0, 0, 0, true, {loopback(*c), loopback(*a)}}, idle{7, 0, 0, false, {}};
    std::atomic<bool> stop{false};
    std::thread wrong([&] { EXPECT_FALSE(c->meet({&idle, 1}, kEverybody, Deadline::after(seconds(10)), stop).ok()); });
    std::thread dialing([&] { EXPECT_TRUE(b->meet({&out, 1}, kEverybody, Deadline::after(seconds(10)), kNever).ok()); });
    EXPECT_TRUE(a->meet({&in, 1}, kEverybody, Deadline::after(seconds(10)), kNever).ok());
    stop = true;
    wrong.join();
    dialing.join();
    EXPECT_EQ(c->strangers(), 0u);
}

TEST(Door, StrangersDelayNobody) {
    Secret secret = new_secret();
    auto a = door(secret, 0), b = door(secret, 1);
    Endpoint at = loopback(*a);
    std::vector<Fd> silent;
    for (int i = 0; i < 50; ++i) silent.push_back(knock(at));
    std::atomic<bool> over{false};
    std::vector<std::thread> noise;
    noise.emplace_back([&] {
        while (!over) {
            knock(at);  // and closes
            std::this_thread::sleep_for(milliseconds(1));
        }
    });
    noise.emplace_back([&] {
        while (!over) {
            Fd fd = knock(at);
            constexpr std::string_view request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
            if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) > 0) read_exactly(fd.get(), 4096);
            std::this_thread::sleep_for(milliseconds(1));
        }
    });
    noise.emplace_back([&] {
        std::string megabyte(1 << 20, '\x5a');
        while (!over) {
            Fd fd = knock(at);
            for (size_t sent = 0; sent < megabyte.size();) {
                ssize_t now = ::send(fd.get(), megabyte.data() + sent, megabyte.size() - sent, MSG_NOSIGNAL);
                if (now <= 0) break;
                sent += static_cast<size_t>(now);
            }
        }
    });
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_LT(seconds_of([&] { meet_both(*a, *b, 4); }), 0.5 * kSlack);

    // A longer meeting outlives the patience with the silent ones. Nobody accepts afterwards, so the noise ends before it does.
    Wish nobody{5, 0, 0, false, {}};
    std::atomic<bool> stop{false};
    std::thread watching([&] { EXPECT_FALSE(a->meet({&nobody, 1}, kEverybody, Deadline::after(seconds(10)), stop).ok()); });
    std::this_thread::sleep_for(milliseconds(2300));
    over = true;
    for (std::thread& thread : noise) thread.join();
    for (const Fd& fd : silent) {
        read_exactly(fd.get(), 40);                       // the greeting, and then
        EXPECT_EQ(read_exactly(fd.get(), 1).size(), 0u);  // the end
    }
    stop = true;
    watching.join();
    EXPECT_GT(a->strangers(), 53u);
}

// Somebody who has recorded a whole handshake gets nowhere with it: the greeting is another one.
TEST(Door, AReplayedHandshakeIsAStranger) {
    Secret secret = new_secret();
    auto a = door(secret, 0), b = door(secret, 1);

    // A relay between the two, which keeps what the dialer said.
    Fd relay(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::bind(relay.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    ASSERT_EQ(::listen(relay.get(), 8), 0);
    socklen_t bytes = sizeof at;
    ::getsockname(relay.get(), reinterpret_cast<sockaddr*>(&at), &bytes);

    Wish in{1, 0, 0, false, {}}, out{0, 0, 0, true, {{"127.0.0.1", ntohs(at.sin_port)}}};
    std::thread dialing([&] { EXPECT_TRUE(b->meet({&out, 1}, kEverybody, Deadline::after(seconds(10)), kNever).ok()); });
    std::thread accepting([&] { EXPECT_TRUE(a->meet({&in, 1}, kEverybody, Deadline::after(seconds(10)), kNever).ok()); });
    Fd from_dialer(::accept(relay.get(), nullptr, nullptr));
    Fd to_acceptor = knock(loopback(*a));
    auto pass = [](const Fd& from, const Fd& to, size_t count) {
        std::string text = read_exactly(from.get(), count);
        EXPECT_EQ(::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(count));
        return text;
    };
    pass(to_acceptor, from_dialer, 40);
    std::string claim = pass(from_dialer, to_acceptor, 92);
    std::string answer = pass(to_acceptor, from_dialer, 32);
    pass(from_dialer, to_acceptor, 1);
    dialing.join();
    accepting.join();
    ASSERT_EQ(a->strangers(), 0u);

    Wish again{1, 0, 1, false, {}};
    std::atomic<bool> stop{false};
    std::thread waiting([&] { EXPECT_FALSE(a->meet({&again, 1}, kEverybody, Deadline::after(seconds(5)), stop).ok()); });
    Fd replay = knock(loopback(*a));
    EXPECT_EQ(read_exactly(replay.get(), 40).size(), 40u);
    EXPECT_EQ(::send(replay.get(), claim.data(), claim.size(), MSG_NOSIGNAL), 92);
    EXPECT_EQ(read_exactly(replay.get(), 32).size(), 0u);  // no proof, but the end
    stop = true;
    waiting.join();
    EXPECT_EQ(a->strangers(), 1u);
}

// An acceptor without the secret that sends a dialer its own proof back is not believed.
TEST(Door, AReflectedProofIsNotBelieved) {
    Secret secret = new_secret();
    auto b = door(secret, 1);
    Fd liar(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::bind(liar.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    ASSERT_EQ(::listen(liar.get(), 8), 0);
    socklen_t bytes = sizeof at;
    ::getsockname(liar.get(), reinterpret_cast<sockaddr*>(&at), &bytes);
    std::thread lying([&] {
        Fd fd(::accept(liar.get(), nullptr, nullptr));
        std::string greeting = std::string("ringccl\1", 8) + std::string(32, 'n');
        ::send(fd.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL);
        std::string claim = read_exactly(fd.get(), 92);
        ::send(fd.get(), claim.data() + 60, 32, MSG_NOSIGNAL);
        EXPECT_EQ(read_exactly(fd.get(), 1).size(), 0u);  // no confirmation
    });
    Wish out{0, 0, 0, true, {{"127.0.0.1", ntohs(at.sin_port)}}};
    Status status = b->meet({&out, 1}, kEverybody, Deadline::after(milliseconds(300)), kNever).status();
    lying.join();
    EXPECT_EQ(status.code(), ringTimeout);
}

TEST(Door, WithoutDescriptorsTheTextSaysSo) {
    Secret secret = new_secret();
    auto a = door(secret, 0);
    rlimit before;
    ::getrlimit(RLIMIT_NOFILE, &before);
    Fd probe(::dup(0));
    rlimit tight = before;
    tight.rlim_cur = static_cast<rlim_t>(probe.get()) + 3;  // probe's own and what the loop needs
    probe.reset();
    Endpoint at = loopback(*a);
    std::vector<Fd> knocks;
    knocks.push_back(knock(at));
    ::setrlimit(RLIMIT_NOFILE, &tight);
    Wish in{1, 0, 0, false, {}};
    rusage cpu_before, cpu_after;
    ::getrusage(RUSAGE_THREAD, &cpu_before);
    Status status = a->meet({&in, 1}, kEverybody, Deadline::after(milliseconds(500)), kNever).status();
    ::getrusage(RUSAGE_THREAD, &cpu_after);
    ::setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_THAT(status.text(), HasSubstr("Too many open files"));
    double busy = (cpu_after.ru_utime.tv_sec - cpu_before.ru_utime.tv_sec) +
                  (cpu_after.ru_utime.tv_usec - cpu_before.ru_utime.tv_usec) * 1e-6;
    EXPECT_LT(busy, 0.2) << "it spins";
}

TEST(Door, AFilterIsListenedOnAddressByAddress) {
    Secret secret = new_secret();
    auto a = door(secret, 0, "=lo"), b = door(secret, 1, "=lo");
    for (const Endpoint& one : a->endpoints()) EXPECT_TRUE(one.address == "127.0.0.1" || one.address == "::1") << one.address;
    meet_both(*a, *b, 2);
    Settings bad;
    bad.interface = "no-such-interface";
    EXPECT_EQ(Door::open(secret, 0, bad).status().code(), ringInvalidUsage);
}

}  // namespace
}  // namespace ringccl
