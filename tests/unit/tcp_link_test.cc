// TCP links over loopback: sender and receiver of one link are driven by turns from one thread, so that every interleaving here
// is one that the test chose.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <tuple>

#include "transports/tcp/tcp_receiver.h"
#include "transports/tcp/tcp_sender.h"
#include "transports/tcp/tcp_transport.h"

static std::atomic<uint64_t> allocations{0};

// Not inlined, or the compiler takes malloc and free for a mismatched pair.
[[gnu::noinline]] void* operator new(size_t bytes) {
    ++allocations;
    if (void* memory = std::malloc(bytes)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
    ++allocations;
    return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
    std::free(memory);
}

namespace ringccl {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using Bytes = std::vector<std::byte>;

constexpr std::byte kGuard{0xEE};

// Buffer sizes of the kernel for one pair of sockets; 0: its own choice.
struct Buffers {
    int send = 0, receive = 0;
};

void set_buffer(int fd, int option, int bytes) {
    if (bytes == 0) return;
    ASSERT_EQ(::setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof bytes), 0);
}

// Two ends of a TCP connection over loopback: first the one that dialled.
std::pair<Fd, Fd> connection(Buffers buffers = {}) {
    Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), dialled(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    set_buffer(listener.get(), SO_RCVBUF, buffers.receive);  // inherited, and before the window is negotiated
    set_buffer(dialled.get(), SO_SNDBUF, buffers.send);
    sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener.get(), generic, size), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener.get(), generic, &size), 0);
    EXPECT_EQ(::connect(dialled.get(), generic, size), 0);
    Fd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_TRUE(accepted);
    return {std::move(dialled), std::move(accepted)};
}

TcpSocket adopt(Fd fd, int rank, int sockets = 1) {
    Settings settings;
    settings.sockets = sockets;
    auto socket = TcpSocket::adopt(std::move(fd), rank, 0, settings);
    EXPECT_TRUE(socket.ok()) << socket.status().text();
    return socket.take();
}

// One direction: rank 0 sends to rank 1.
struct Line {
    std::vector<TcpSocket> from, to;
    std::unique_ptr<TcpSender> sender;
    std::unique_ptr<TcpReceiver> receiver;

    explicit Line(int sockets = 1, Buffers buffers = {}) {
        for (int i = 0; i < sockets; ++i) {
            auto [a, b] = connection(buffers);
            add(std::move(a), std::move(b), sockets);
        }
        start();
    }
    Line(std::vector<std::pair<Fd, Fd>> ends) {
        for (auto& [a, b] : ends) add(std::move(a), std::move(b), static_cast<int>(ends.size()));
        start();
    }

    void add(Fd a, Fd b, int sockets) {
        from.push_back(adopt(std::move(a), 1, sockets));
        to.push_back(adopt(std::move(b), 0, sockets));
    }
    void start() {
        sender = std::make_unique<TcpSender>(from);
        receiver = std::make_unique<TcpReceiver>(to);
    }
    bool pump() {
        bool moved = sender->pending() && sender->pump();
        return (receiver->waiting() && receiver->pump()) || moved;
    }
};

// Pumps until `done`, or fails: nothing here takes long.
template <class Pump, class Done>
void pump_until(Pump pump, Done done) {
    Deadline deadline = Deadline::after(seconds(20));
    while (!done()) {
        pump();
        ASSERT_FALSE(deadline.passed()) << "stuck";
    }
}

// Until this much can be read: the kernel may deliver a little later than it takes.
void await_bytes(const TcpSocket& socket, int bytes) {
    int there = 0;
    pump_until([&] { ASSERT_EQ(::ioctl(socket.fd(), FIONREAD, &there), 0); }, [&] { return there >= bytes; });
}

Fingerprint print_of(uint64_t slice) {
    return {.sequence = slice, .count = 3 * slice, .kind = Kind::all_reduce, .root = -7};
}

std::byte value_at(uint64_t slice, size_t i) {
    return static_cast<std::byte>((slice * 131 + i) * 2654435761u >> 13);
}

Bytes content(uint64_t slice, size_t bytes) {
    Bytes result(bytes);
    for (size_t i = 0; i < bytes; ++i) result[i] = value_at(slice, i);
    return result;
}

// A landing with guards on both sides.
struct Landing {
    static constexpr size_t kBand = 64;
    Bytes memory;
    size_t bytes;

    explicit Landing(size_t size) : memory(size + 2 * kBand, kGuard), bytes(size) {}
    std::byte* data() { return memory.data() + kBand; }
    bool guarded() const {
        auto guard = [](std::byte b) { return b == kGuard; };
        return std::all_of(memory.begin(), memory.begin() + kBand, guard) &&
               std::all_of(memory.end() - kBand, memory.end(), guard);
    }
    bool untouched() const {
        return std::all_of(memory.begin(), memory.end(), [](std::byte b) { return b == kGuard; });
    }
};

// Sends slices of these sizes with all the overlap that the link allows, and checks each.
void transfer(Line& line, const std::vector<size_t>& sizes, uint32_t seed = 1) {
    std::mt19937 random(seed);
    std::map<uint64_t, Bytes> sources;
    std::map<uint64_t, Landing> landings;
    uint64_t posted = 0, taken = 0;
    auto turn = [&] {
        if (line.sender->offered() < sizes.size() && line.sender->ready() && random() % 2) {
            uint64_t number = line.sender->offered();
            Bytes& source = sources[number] = content(number, sizes[number]);
            line.sender->offer(print_of(number), {.data = source.data(), .bytes = source.size()});
        }
        while (!sources.empty() && sources.begin()->first < line.sender->taken()) {
            std::fill(sources.begin()->second.begin(), sources.begin()->second.end(),
                      std::byte{0});  // the sender said it may change
            sources.erase(sources.begin());
        }
        if (posted < sizes.size() && posted < taken + kLinkDepth && random() % 2) {
            Landing& landing = landings.emplace(posted, sizes[posted]).first->second;
            line.receiver->post(landing.data(), landing.bytes);
            ++posted;
        }
        if (random() % 4) line.pump();
        View view;
        while (line.receiver->take(view) == RecvLink::Taken::slice) {
            Landing& landing = landings.at(taken);
            ASSERT_EQ(view.data, landing.data());
            ASSERT_EQ(view.bytes, sizes[taken]);
            ASSERT_EQ(view.print, print_of(taken));
            ASSERT_EQ(Bytes(view.data, view.data + view.bytes), content(taken, sizes[taken])) << "slice " << taken;
            ASSERT_TRUE(landing.guarded()) << "slice " << taken;
            line.receiver->release();
            landings.erase(taken++);
        }
        ASSERT_TRUE(line.receiver->status().ok()) << line.receiver->status().text();
    };
    pump_until(turn, [&] { return taken == sizes.size() || testing::Test::HasFatalFailure(); });
    EXPECT_TRUE(line.sender->flushed());
    EXPECT_EQ(line.sender->taken(), sizes.size());
}

TEST(TcpLink, CarriesEverySizeAroundHeaderAndInputBuffer) {
    std::vector<size_t> edges;
    for (size_t at : {size_t{0}, sizeof(FrameHeader), 4096 - 2 * sizeof(FrameHeader), 4096 - sizeof(FrameHeader), size_t{4096},
                      4096 + sizeof(FrameHeader), size_t{8192}, size_t{65536}, size_t{1} << 20})
        for (size_t size = at > 2 ? at - 2 : 0; size <= at + 2; ++size) edges.push_back(size);
    std::vector<size_t> sizes;  // every edge after every edge
    for (size_t first : edges)
        for (size_t second : edges)
            if (first + second < 1 << 18) sizes.insert(sizes.end(), {first, second});
    sizes.insert(sizes.end(), edges.begin(), edges.end());
    Line line;
    transfer(line, sizes);
}

class TcpLinkSockets : public testing::TestWithParam<int> {};

TEST_P(TcpLinkSockets, CarriesRandomSlicesInOrder) {
    for (uint32_t seed : {1, 2}) {
        std::mt19937 random(seed);
        std::vector<size_t> sizes(150);
        for (size_t& size : sizes) size = random() % 3 ? random() % 5000 : random() % (1 << 20);
        Line line(GetParam());
        transfer(line, sizes, seed);
    }
}

TEST_P(TcpLinkSockets, SurvivesTinyKernelBuffers) {
    std::vector<size_t> sizes{1, 100'000, 0, 4096, 7, 300'000, 40, 9999, 65536, 0, 0, 150'000};
    Line line(GetParam(), {.send = 1, .receive = 1});  // the kernel makes the least of it that it can
    transfer(line, sizes);
}

INSTANTIATE_TEST_SUITE_P(Sockets, TcpLinkSockets, testing::Range(1, 5));

// A stretch of network between the ends of one socket, which passes on only what it is told to.
struct Throttle {
    Fd near, far;

    size_t pass(size_t most) {
        Bytes some(most);
        ssize_t got = ::recv(near.get(), some.data(), most, MSG_DONTWAIT);
        if (got <= 0) return 0;
        EXPECT_EQ(::send(far.get(), some.data(), got, MSG_NOSIGNAL), got);
        return got;
    }
};

class TcpLinkThrottled : public testing::TestWithParam<int> {};

TEST_P(TcpLinkThrottled, OneStuckSocketDoesNotGateTheOthers) {
    const size_t bytes = 200'000;
    std::vector<std::pair<Fd, Fd>> ends;
    auto [sending_end, near] = connection({.send = 1, .receive = 1});
    auto [far, receiving_end] = connection();
    Throttle throttle{std::move(near), std::move(far)};
    ends.emplace_back(std::move(sending_end), std::move(receiving_end));
    for (int i = 1; i < GetParam(); ++i) ends.push_back(connection());
    Line line(std::move(ends));

    // Slice 0 goes to the first socket and gets stuck there; 1 to 7 pass it on the others.
    std::vector<Bytes> sources;
    std::vector<Landing> landings(kLinkDepth, Landing(bytes));
    for (int i = 0; i < kLinkDepth; ++i) {
        sources.push_back(content(i, bytes));
        line.receiver->post(landings[i].data(), bytes);
        line.sender->offer(print_of(i), {.data = sources[i].data(), .bytes = bytes});
    }
    auto arrived = [&](int i) { return std::memcmp(landings[i].data(), sources[i].data(), bytes) == 0; };
    auto others_arrived = [&] {
        for (int i = 1; i < kLinkDepth; ++i)
            if (!arrived(i)) return false;
        return true;
    };
    pump_until([&] { line.pump(); }, others_arrived);
    View view;
    EXPECT_TRUE(landings[0].untouched());
    EXPECT_EQ(line.receiver->take(view), RecvLink::Taken::nothing);
    EXPECT_EQ(line.sender->taken(), 0u);
    EXPECT_FALSE(line.sender->ready());

    std::vector<const std::byte*> shown;
    auto turn = [&] {
        throttle.pass(1000);
        line.pump();
        while (line.receiver->take(view) == RecvLink::Taken::slice) shown.push_back(view.data);
    };
    pump_until(turn, [&] { return shown.size() == kLinkDepth; });
    for (int i = 0; i < kLinkDepth; ++i) EXPECT_EQ(shown[i], landings[i].data());
    EXPECT_TRUE(arrived(0));
    EXPECT_TRUE(line.sender->flushed());
}

INSTANTIATE_TEST_SUITE_P(Sockets, TcpLinkThrottled, testing::Range(2, 5));

TEST(TcpLink, WaitsForLateLandingsAndGoesOn) {
    Line line(2);
    std::vector<Bytes> sources;
    for (int i = 0; i < kLinkDepth; ++i) {
        sources.push_back(content(i, 10'000 + i));
        line.sender->offer(print_of(i), {.data = sources[i].data(), .bytes = sources[i].size()});
    }
    EXPECT_FALSE(line.receiver->waiting());
    for (size_t socket : {0, 1})
        EXPECT_FALSE(line.receiver->wants(socket)) << "nothing is posted, so a poll would wake for nothing";

    View view;
    for (int i = 0; i < kLinkDepth; ++i) {
        Landing landing(sources[i].size());
        line.receiver->post(landing.data(), landing.bytes);
        pump_until([&] { line.pump(); }, [&] { return !line.receiver->waiting(); });
        ASSERT_EQ(line.receiver->take(view), RecvLink::Taken::slice);
        EXPECT_EQ(Bytes(view.data, view.data + view.bytes), sources[i]);
        EXPECT_TRUE(landing.guarded());
        EXPECT_EQ(line.receiver->take(view), RecvLink::Taken::nothing);
    }
}

TEST(TcpLink, SocketThatIsAheadOfTheLandingsIsNotWatched) {
    Line line(2);
    Bytes first = content(0, 50'000), second = content(1, 50'000), third = content(2, 50'000);
    Landing landing(first.size()), last(third.size());
    for (const Bytes* source : {&first, &second, &third})
        line.sender->offer(print_of(line.sender->offered()), {.data = source->data(), .bytes = source->size()});
    line.receiver->post(landing.data(), landing.bytes);  // slice 0 comes on socket 0, slice 1 on socket 1
    pump_until([&] { line.pump(); }, [&] { return !line.receiver->waiting(); });
    // The second socket's slice has a landing only now; then a third one, which the first socket carries.
    Landing middle(second.size());
    line.receiver->post(middle.data(), middle.bytes);
    line.receiver->post(last.data(), last.bytes);
    pump_until([&] { line.pump(); }, [&] { return !line.receiver->waiting(); });
    EXPECT_EQ(Bytes(middle.data(), middle.data() + middle.bytes), second);
    EXPECT_EQ(Bytes(last.data(), last.data() + last.bytes), third);
}

TEST(TcpLink, SmallSliceThatIsAlreadyHereNeedsNoSystemCallWhenPosted) {
    Line line;
    Bytes source = content(0, 16);
    Landing first(16), second(16);
    line.receiver->post(first.data(), 16);
    line.sender->offer(print_of(0), {.data = source.data(), .bytes = 16});
    line.sender->offer(print_of(1), {.data = source.data(), .bytes = 16});
    EXPECT_TRUE(line.sender->flushed()) << "offer() writes at once";
    await_bytes(line.to[0], 2 * (sizeof(FrameHeader) + 16));
    pump_until([&] { line.pump(); }, [&] { return !line.receiver->waiting(); });
    line.receiver->post(second.data(), 16);
    EXPECT_FALSE(line.receiver->waiting());
    EXPECT_EQ(Bytes(second.data(), second.data() + 16), source);
}

TEST(TcpLink, UnequalSizesGiveAViewWithoutDataAndTouchNothing) {
    for (size_t sent : {0, 99, 101, 5000, 100'000}) {
        Line line;
        Bytes source = content(0, sent), after = content(1, 100);
        Landing landing(100), next(100);
        line.receiver->post(landing.data(), landing.bytes);
        line.receiver->post(next.data(), next.bytes);
        line.sender->offer(print_of(5), {.data = source.data(), .bytes = source.size()});
        line.sender->offer(print_of(6), {.data = after.data(), .bytes = after.size()});
        pump_until([&] { line.pump(); }, [&] { return !line.receiver->waiting(); });
        View view;
        ASSERT_EQ(line.receiver->take(view), RecvLink::Taken::slice);
        EXPECT_EQ(view.data, nullptr);
        EXPECT_EQ(view.bytes, sent);
        EXPECT_EQ(view.print, print_of(5));
        EXPECT_TRUE(landing.untouched());
        ASSERT_EQ(line.receiver->take(view), RecvLink::Taken::slice) << "the link itself goes on";
        EXPECT_EQ(Bytes(view.data, view.data + view.bytes), after);
        EXPECT_TRUE(next.guarded());
    }
}

// Bytes as a peer would have to write them, or should not.
void write_raw(const Line& line, const void* data, size_t bytes, size_t socket = 0) {
    ASSERT_EQ(::send(line.from[socket].fd(), data, bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
}
void write_header(const Line& line, FrameHeader header, size_t socket = 0) {
    write_raw(line, &header, sizeof header, socket);
}

// What the receiver says, once it is broken.
Status failure_of(Line& line) {
    View view;
    RecvLink::Taken taken;
    pump_until([&] { line.receiver->waiting() && line.receiver->pump(); },
               [&] { return (taken = line.receiver->take(view)) != RecvLink::Taken::nothing; });
    EXPECT_EQ(taken, RecvLink::Taken::broken);
    return line.receiver->status();
}

TEST(TcpLink, EndOfStreamIsARemoteErrorThatNamesPeerAddressAndSlice) {
    const Bytes payload = content(0, 6000);
    const FrameHeader header{.bytes = 6000, .slice = 0, .print = print_of(0)};
    Bytes frame(sizeof header + payload.size());
    std::memcpy(frame.data(), &header, sizeof header);
    std::memcpy(frame.data() + sizeof header, payload.data(), payload.size());
    for (size_t cut :
         {size_t{0}, size_t{1}, sizeof header - 1, sizeof header, sizeof header + 1, size_t{4096}, frame.size() - 1}) {
        Line line;
        Landing landing(payload.size());
        line.receiver->post(landing.data(), landing.bytes);
        write_raw(line, frame.data(), cut);
        std::string address = line.to[0].peer();
        line.from.clear();
        Status status = failure_of(line);
        EXPECT_EQ(status.code(), ringRemoteError) << cut;
        EXPECT_THAT(status.text(), HasSubstr("rank 0 at 127.0.0.1:"));
        EXPECT_THAT(status.text(), HasSubstr(address));
        EXPECT_THAT(status.text(), HasSubstr("slice 0 of 6000 bytes"));
        EXPECT_TRUE(landing.guarded());
        EXPECT_FALSE(line.receiver->wants(0)) << "a broken link is not watched";
    }
}

TEST(TcpLink, SlicesThatCameBeforeTheEndAreStillShown) {
    Line line(3);
    Bytes source = content(0, 3000);
    std::vector<Landing> landings(6, Landing(3000));
    for (Landing& landing : landings) line.receiver->post(landing.data(), landing.bytes);
    for (int i = 0; i < 5; ++i) line.sender->offer(print_of(i), {.data = source.data(), .bytes = source.size()});
    line.from.clear();
    View view;
    for (int i = 0; i < 5; ++i) {
        pump_until([&] { line.receiver->pump(); }, [&] { return line.receiver->take(view) == RecvLink::Taken::slice; });
        EXPECT_EQ(view.print, print_of(i));
    }
    EXPECT_THAT(failure_of(line).text(), HasSubstr("slice 5 of 3000 bytes"));
}

TEST(TcpLink, ResetIsARemoteErrorOnBothDirections) {
    auto [mine, peers] = connection();
    linger abrupt{.l_onoff = 1, .l_linger = 0};
    ASSERT_EQ(::setsockopt(peers.get(), SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt), 0);
    std::vector<TcpSocket> sockets;
    sockets.push_back(adopt(std::move(mine), 7));
    TcpSender sender(sockets);
    TcpReceiver receiver(sockets);
    Landing landing(8);
    receiver.post(landing.data(), 8);
    peers.reset();

    View view;
    pump_until([&] { receiver.pump(); }, [&] { return receiver.take(view) == RecvLink::Taken::broken; });
    EXPECT_EQ(receiver.status().code(), ringRemoteError);
    EXPECT_THAT(receiver.status().text(), HasSubstr("rank 7"));

    ASSERT_TRUE(sender.ready());
    sender.offer(print_of(0), {.data = landing.data(), .bytes = 8});
    EXPECT_EQ(sender.status().code(), ringRemoteError);
    EXPECT_THAT(sender.status().text(), HasSubstr("slice 0 was being sent"));
    EXPECT_FALSE(sender.ready());
    EXPECT_FALSE(sender.flushed()) << "a slice that was not sent must not count as sent";
    EXPECT_EQ(sender.taken(), 0u);
    EXPECT_FALSE(sender.wants(0));
}

TEST(TcpLink, HeaderThatCannotBeIsASystemError) {
    struct Case {
        const char* what;
        FrameHeader header;
    };
    const Case cases[] = {{"magic", {.magic = kFrameMagic + 1, .bytes = 8, .slice = 0, .print = {}}},
                          {"http", {.magic = 0x20544547, .bytes = 0x54482f20, .slice = 0x302e312f50545420, .print = {}}},
                          {"skipped a slice", {.bytes = 8, .slice = 1, .print = {}}},
                          {"far ahead", {.bytes = 8, .slice = uint64_t{1} << 60, .print = {}}}};
    for (const Case& bad : cases) {
        Line line;
        Landing landing(8);
        line.receiver->post(landing.data(), landing.bytes);
        write_header(line, bad.header);
        Status status = failure_of(line);
        EXPECT_EQ(status.code(), ringSystemError) << bad.what;
        EXPECT_THAT(status.text(), HasSubstr("rank 0 at 127.0.0.1:")) << bad.what;
        EXPECT_TRUE(landing.untouched()) << bad.what;
    }
}

TEST(TcpLink, SliceNumberThatCannotBeIsASystemErrorOnSeveralSocketsToo) {
    // Slices 0 to 3 have been taken, 4 has come, 5 to 11 have landings.
    struct Case {
        const char* what;
        uint64_t slice;
    };
    for (Case bad :
         {Case{"taken long ago", 0}, Case{"taken", 3}, Case{"here already", 4}, Case{"far ahead", uint64_t{1} << 60}}) {
        Line line(2);
        View view;
        for (int i = 0; i < kLinkDepth; ++i) line.receiver->post(nullptr, 0);
        for (uint64_t i = 0; i < 5; ++i) write_header(line, {.bytes = 0, .slice = i, .print = {}}, 0);
        for (int i = 0; i < 4; ++i)
            pump_until([&] { line.receiver->pump(); }, [&] { return line.receiver->take(view) == RecvLink::Taken::slice; });
        for (int i = 0; i < 4; ++i) line.receiver->post(nullptr, 0);
        write_header(line, {.bytes = 0, .slice = bad.slice, .print = {}}, 1);
        pump_until([&] { line.receiver->pump(); }, [&] { return !line.receiver->status().ok(); });
        EXPECT_EQ(line.receiver->status().code(), ringSystemError) << bad.what;
        EXPECT_THAT(line.receiver->status().text(), HasSubstr("slice 5 of 0 bytes was expected")) << bad.what;
        EXPECT_EQ(line.receiver->take(view), RecvLink::Taken::slice) << "what had come before is still shown";
        EXPECT_EQ(line.receiver->take(view), RecvLink::Taken::broken) << bad.what;
    }
}

TEST(TcpLink, EndOfOneOfSeveralSocketsMattersOnlyWithinASlice) {
    for (bool within : {false, true}) {
        Line line(2);
        Landing landing(8);
        line.receiver->post(landing.data(), 8);
        if (within) write_header(line, {.bytes = 8, .slice = 0, .print = {}}, 0);
        ::shutdown(line.from[0].fd(), SHUT_WR);
        if (within) {
            EXPECT_THAT(failure_of(line).text(), HasSubstr("within a slice"));
            continue;
        }
        pump_until([&] { line.receiver->pump(); }, [&] { return !line.receiver->wants(0); });
        EXPECT_TRUE(line.receiver->wants(1));
        write_header(line, {.bytes = 8, .slice = 0, .print = {}}, 1);
        write_raw(line, "12345678", 8, 1);
        pump_until([&] { line.receiver->pump(); }, [&] { return !line.receiver->waiting(); });
        EXPECT_EQ(std::memcmp(landing.data(), "12345678", 8), 0);
        EXPECT_TRUE(line.receiver->status().ok());
    }
}

TEST(TcpLink, ClosingIsSeenByThePeerEvenIfAChildHoldsTheDescriptor) {
    Line line;
    Fd inherited(::dup(line.from[0].fd()));  // as fork would
    Landing landing(8);
    line.receiver->post(landing.data(), 8);
    line.from.clear();
    EXPECT_EQ(failure_of(line).code(), ringRemoteError);
}

TEST(TcpLink, ClosingWithUnreadBytesDestroysNothingThatWasSent) {
    auto [leaver, stayer] = connection({.send = 1 << 20, .receive = 1});  // most stays in the leaver's kernel for a while
    const Bytes source = content(0, 400'000);
    Landing landing(source.size());
    std::vector<TcpSocket> to;
    to.push_back(adopt(std::move(stayer), 0));
    TcpReceiver receiver(to);
    ASSERT_EQ(::send(to[0].fd(), "unread", 6, 0), 6);
    {
        std::vector<TcpSocket> from;
        from.push_back(adopt(std::move(leaver), 1));
        await_bytes(from[0], 6);
        TcpSender sender(from);
        sender.offer(print_of(0), {.data = source.data(), .bytes = source.size()});
        ASSERT_TRUE(sender.flushed());
    }
    receiver.post(landing.data(), landing.bytes);
    View view;
    pump_until([&] { receiver.waiting() && receiver.pump(); }, [&] { return receiver.take(view) != RecvLink::Taken::nothing; });
    EXPECT_TRUE(receiver.status().ok()) << receiver.status().text();
    EXPECT_EQ(Bytes(landing.data(), landing.data() + landing.bytes), source);
}

TEST(TcpLink, SteadyStateAllocatesNothing) {
    Line line(2);
    Bytes source = content(0, 70'000), landing(70'000);
    View view;
    auto one = [&] {
        line.receiver->post(landing.data(), landing.size());
        line.sender->offer(print_of(0), {.data = source.data(), .bytes = source.size()});
        while (line.receiver->take(view) == RecvLink::Taken::nothing) line.pump();
        line.receiver->release();
    };
    one();
    uint64_t before = allocations;
    for (int i = 0; i < 100; ++i) one();
    EXPECT_EQ(allocations - before, 0u);
}

// Where fake doors of several ranks meet.
struct Switchboard {
    std::map<std::tuple<int, int, int, int>, Fd> waiting;  // dialler, other, lane, index
    int dialled = 0;
};

const Presence kEverybody(64);

class FakeDoor final : public Door {
public:
    FakeDoor(Switchboard& board, int rank) : board_(board), rank_(rank) {
        endpoints_.push_back({.address = "127.0.0.1", .port = static_cast<uint16_t>(1000 + rank)});
    }
    const std::vector<Endpoint>& endpoints() const override { return endpoints_; }
    uint64_t strangers() const override { return 0; }
    Result<std::vector<Fd>> meet(std::span<const Wish> wishes, const Presence&, Deadline,
                                 const std::atomic<bool>& stop) override {
        if (stop) return failure(ringRemoteError, "stopped");
        std::vector<Fd> result;
        for (const Wish& wish : wishes) {
            EXPECT_EQ(wish.at.size(), 1u);
            EXPECT_EQ(wish.at[0].port, 1000 + wish.peer);
            auto key = wish.dial ? std::tuple(rank_, wish.peer, wish.lane, wish.index)
                                 : std::tuple(wish.peer, rank_, wish.lane, wish.index);
            board_.dialled += wish.dial;
            if (auto node = board_.waiting.extract(key)) {
                result.push_back(std::move(node.mapped()));
            } else {
                auto [mine, other] = connection();
                result.push_back(std::move(mine));
                board_.waiting[key] = std::move(other);
            }
        }
        return result;
    }

private:
    Switchboard& board_;
    int rank_;
    std::vector<Endpoint> endpoints_;
};

class TcpTransportTest : public testing::Test {
protected:
    void make(int size, int sockets) {
        Settings settings;
        settings.sockets = sockets;
        for (int rank = 0; rank < size; ++rank) {
            ranks.push_back(
                std::make_unique<TcpTransport>(std::make_unique<FakeDoor>(board, rank), rank, size, settings, kEverybody));
            cards.push_back(ranks.back()->card());
        }
    }
    void probe() {
        for (size_t rank = 0; rank < ranks.size(); ++rank) {
            std::vector<bool> wanted(ranks.size(), true), reached;
            wanted[rank] = false;
            std::vector<std::string> why_not;
            ASSERT_TRUE(ranks[rank]->probe(cards, wanted, deadline, stop, reached, why_not).ok());
            EXPECT_EQ(reached, wanted);
        }
    }
    Status connect(int rank, std::vector<int> peers, int lane = 0) { return ranks[rank]->connect(peers, lane, deadline, stop); }
    void progress() {
        for (auto& rank : ranks) rank->progress();
    }

    Switchboard board;
    std::vector<std::unique_ptr<TcpTransport>> ranks;
    std::vector<nlohmann::json> cards;
    Deadline deadline = Deadline::after(seconds(20));
    std::atomic<bool> stop{false};
};

TEST_F(TcpTransportTest, LanesAndDirectionsAreIndependentAndCountedExactly) {
    make(3, 2);
    probe();
    for (int lane : {0, 3})
        for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(connect(rank, {(rank + 1) % 3, (rank + 2) % 3}, lane).ok());
    EXPECT_TRUE(board.waiting.empty());
    EXPECT_EQ(board.dialled, 2 * 3 * 2) << "lanes x pairs x sockets: exactly one end dials";
    ASSERT_TRUE(connect(0, {1, 2}, 3).ok());
    EXPECT_EQ(board.dialled, 12) << "links that exist are kept";

    const size_t bytes = 30'000;
    std::map<std::tuple<int, int, int>, std::pair<Bytes, Bytes>> buffers;
    for (int lane : {0, 3})
        for (int from = 0; from < 3; ++from)
            for (int to = 0; to < 3; ++to)
                if (from != to) {
                    auto& [source, landing] = buffers[{lane, from, to}];
                    source = content(100 * lane + 10 * from + to, bytes);
                    landing.resize(bytes);
                    ranks[to]->receiver(from, lane).post(landing.data(), bytes);
                    ranks[from]->sender(to, lane).offer(print_of(lane), {.data = source.data(), .bytes = bytes});
                }
    for (auto& [key, pair] : buffers) {
        auto [lane, from, to] = key;
        View view;
        pump_until([&] { progress(); },
                   [&, l = lane, f = from, t = to] { return ranks[t]->receiver(f, l).take(view) == RecvLink::Taken::slice; });
        EXPECT_EQ(pair.first, pair.second);
    }
    for (auto& rank : ranks) {
        auto counters = rank->counters();
        EXPECT_EQ(counters.messages_sent, 4u);
        EXPECT_EQ(counters.payload_sent, 4 * bytes);
        EXPECT_EQ(counters.bytes_sent, 4 * (bytes + sizeof(FrameHeader)));
        EXPECT_EQ(counters.bytes_received, 4 * (bytes + sizeof(FrameHeader)));
        EXPECT_FALSE(rank->progress()) << "nothing is left to do";
    }
}

TEST_F(TcpTransportTest, WatchesOnlyWhatCanBringItOn) {
    make(2, 1);
    probe();
    ASSERT_TRUE(connect(0, {1}).ok() && connect(1, {0}).ok());
    std::vector<pollfd> watched;
    for (auto& rank : ranks) rank->watch(watched);
    EXPECT_TRUE(watched.empty()) << "an idle communicator sleeps";

    const size_t bytes = 24 << 20;  // more than the kernel takes
    Bytes source(bytes), landing(bytes);
    ranks[0]->sender(1, 0).offer(print_of(0), {.data = source.data(), .bytes = bytes});
    ranks[0]->progress();
    ranks[0]->watch(watched);
    ASSERT_EQ(watched.size(), 1u);
    EXPECT_EQ(watched[0].events, POLLOUT);
    ranks[1]->watch(watched);
    EXPECT_EQ(watched.size(), 1u) << "no landing, no interest";
    ranks[1]->receiver(0, 0).post(landing.data(), bytes);
    ranks[1]->watch(watched);
    ASSERT_EQ(watched.size(), 2u);
    EXPECT_EQ(watched[1].events, POLLIN);

    // Only ever sleeping on what is watched must be enough to finish.
    View view;
    auto turn = [&] {
        progress();
        watched.clear();
        for (auto& rank : ranks) rank->watch(watched);
        if (!watched.empty()) {
            ASSERT_GT(::poll(watched.data(), watched.size(), 10'000), 0) << "a wake-up was missed";
        }
    };
    pump_until(turn, [&] { return HasFatalFailure() || ranks[1]->receiver(0, 0).take(view) == RecvLink::Taken::slice; });
    EXPECT_TRUE(ranks[0]->sender(1, 0).flushed());
}

TEST_F(TcpTransportTest, SaysWhyAPeerCannotBeReached) {
    make(5, 1);
    cards[1] = nullptr;
    cards[2] = {{"endpoints", "everywhere"}};
    cards[3] = {{"endpoints", nlohmann::json::array()}};
    std::vector<bool> reached;
    std::vector<std::string> why_not;
    ASSERT_TRUE(ranks[0]->probe(cards, {false, true, true, true, true}, deadline, stop, reached, why_not).ok());
    EXPECT_EQ(reached, (std::vector<bool>{false, false, false, false, true}));
    EXPECT_THAT(why_not[1], HasSubstr("does not offer TCP"));
    EXPECT_THAT(why_not[2], HasSubstr("cannot be read"));
    EXPECT_THAT(why_not[3], HasSubstr("no TCP address"));
    EXPECT_EQ(why_not[4], "");
    EXPECT_EQ(connect(0, {1}).code(), ringInternalError);
}

TEST_F(TcpTransportTest, PassesOnWhyNobodyCame) {
    make(2, 1);
    probe();
    stop = true;
    EXPECT_EQ(connect(0, {1}).code(), ringRemoteError);
    stop = false;
    ASSERT_TRUE(connect(0, {1}).ok() && connect(1, {0}).ok()) << "a failed connect leaves nothing half made";
}

TEST(TcpTransport, MeetsThroughRealDoors) {
    const Secret secret{1, 2, 3};
    const size_t bytes = 100'000;
    const Bytes sources[2] = {content(0, bytes), content(1, bytes)};
    Settings settings;
    settings.sockets = 2;
    const std::atomic<bool> stop{false};
    const Deadline deadline = Deadline::after(seconds(20));
    std::unique_ptr<TcpTransport> ranks[2];
    std::vector<nlohmann::json> cards;
    for (int rank : {0, 1}) {
        auto opened = TcpTransport::open(secret, rank, 2, settings, kEverybody);
        ASSERT_TRUE(opened.ok()) << opened.status().text();
        ranks[rank] = opened.take();
        cards.push_back(ranks[rank]->card());
    }
    auto exchange = [&](int rank) {
        TcpTransport& mine = *ranks[rank];
        const int peer = 1 - rank;
        std::vector<bool> wanted(2, true), reached;
        std::vector<std::string> why_not;
        ASSERT_TRUE(mine.probe(cards, wanted, deadline, stop, reached, why_not).ok());
        Status status = mine.connect(std::array{peer}, 1, deadline, stop);
        ASSERT_TRUE(status.ok()) << status.text();
        Bytes landing(bytes);
        mine.receiver(peer, 1).post(landing.data(), bytes);
        mine.sender(peer, 1).offer(print_of(rank), {.data = sources[rank].data(), .bytes = bytes});
        View view;
        pump_until(
            [&] { mine.progress(); },
            [&] { return mine.sender(peer, 1).flushed() && mine.receiver(peer, 1).take(view) == RecvLink::Taken::slice; });
        EXPECT_EQ(landing, sources[peer]);
        EXPECT_EQ(view.print, print_of(peer));
    };
    std::thread other(exchange, 1);
    exchange(0);
    other.join();
}

TEST(TcpSocket, HasTheOptionsOfTheDataPath) {
    auto [mine, peers] = connection();
    Settings settings;
    settings.socket_buffer = 50'000;
    auto socket = TcpSocket::adopt(std::move(mine), 3, 2, settings);
    ASSERT_TRUE(socket.ok());
    auto option = [&](int level, int name) {
        int value = -1;
        socklen_t size = sizeof value;
        EXPECT_EQ(::getsockopt(socket.value().fd(), level, name, &value, &size), 0);
        return value;
    };
    EXPECT_EQ(option(IPPROTO_TCP, TCP_NODELAY), 1);
    EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_EQ(option(SOL_SOCKET, SO_SNDBUF), 100'000) << "Linux doubles what is asked for";
    EXPECT_EQ(option(SOL_SOCKET, SO_RCVBUF), 100'000);
    EXPECT_EQ(option(IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
    EXPECT_THAT(socket.value().peer(), HasSubstr("rank 3 at 127.0.0.1:"));
    EXPECT_THAT(socket.value().peer(), HasSubstr("lane 2"));
    char byte;
    EXPECT_EQ(::recv(socket.value().fd(), &byte, 1, 0), -1);
    EXPECT_EQ(errno, EAGAIN) << "non-blocking";
}

}  // namespace
}  // namespace ringccl
