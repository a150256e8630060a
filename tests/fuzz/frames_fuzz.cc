// What a peer sends on the data sockets of a link: the input is its bytes, on one to three sockets, while slices of sizes from
// the input are expected.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <vector>

#include "fuzz/fuzz.h"
#include "transports/tcp/tcp_receiver.h"

namespace ringccl::fuzz {
namespace {

// A connection over loopback, as TcpSocket wants TCP. Closing it leaves nothing behind (a reset), or the ports would run out.
std::pair<Fd, Fd> connection() {
    static sockaddr_in at{};
    static const int listener = [] {
        int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t bytes = sizeof at;
        must(::bind(fd, reinterpret_cast<sockaddr*>(&at), bytes) == 0 && ::listen(fd, 8) == 0 &&
                 ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &bytes) == 0,
             "there is a listener");
        return fd;
    }();
    Fd dialled(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    must(::connect(dialled.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0, "loopback connects");
    Fd accepted(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    linger reset{1, 0};
    for (const Fd* end : {&dialled, &accepted}) ::setsockopt(end->get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    return {std::move(dialled), std::move(accepted)};
}

struct Landing {
    std::vector<std::byte> memory;
    size_t bytes = 0;
};

}  // namespace
}  // namespace ringccl::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace ringccl;
    using namespace ringccl::fuzz;
    Bytes bytes(data, std::min<size_t>(size, 1 << 15));
    const uint8_t form = bytes.byte();
    Settings settings;
    settings.sockets = 1 + form % 3;
    std::vector<Fd> peers;
    std::vector<TcpSocket> sockets;
    for (int i = 0; i < settings.sockets; ++i) {
        auto [theirs, ours] = connection();
        peers.push_back(std::move(theirs));
        auto adopted = TcpSocket::adopt(std::move(ours), 1, 0, settings);
        must(adopted.ok(), "a socket is adopted");
        sockets.push_back(adopted.take());
    }
    TcpReceiver receiver(sockets);

    // Landings of exactly the posted size between guards: nothing may be written beyond them, or after they were taken.
    constexpr size_t kGuard = 16;
    constexpr std::byte kUntouched{0xEE};
    std::vector<Landing> landings;
    size_t taken = 0;
    auto post = [&] {
        size_t wanted = bytes.byte() * size_t{bytes.byte() & 0x80 ? 64u : 1u};
        landings.push_back({std::vector<std::byte>(wanted + 2 * kGuard, kUntouched), wanted});
        receiver.post(landings.back().memory.data() + kGuard, wanted);
    };
    const int ahead = 1 + (form >> 2) % kLinkDepth;
    for (int i = 0; i < ahead; ++i) post();

    bool broken = false;
    for (int turn = 0; turn < 32 && !broken; ++turn) {
        const uint8_t how = bytes.byte();
        std::string_view piece = bytes.take(how & 0x80 ? 40 + (how & 0x3f) * 16u : how & 0x3f);
        const Fd& peer = peers[turn % peers.size()];
        if (!piece.empty()) ::send(peer.get(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (bytes.empty())
            for (const Fd& one : peers) ::shutdown(one.get(), SHUT_WR);
        for (int i = 0; i < 4 && receiver.waiting(); ++i) receiver.pump();
        View view;
        RecvLink::Taken now;
        while ((now = receiver.take(view)) == RecvLink::Taken::slice) {
            const Landing& mine = landings[taken++];
            must(view.data == nullptr || view.data == mine.memory.data() + kGuard, "a slice is where it was asked to be");
            must(view.data == nullptr || view.bytes == mine.bytes, "what was delivered has the posted size");
            if (landings.size() - taken < static_cast<size_t>(kLinkDepth) && landings.size() < 64) post();
        }
        broken = now == RecvLink::Taken::broken;
        must(broken != receiver.status().ok() || !broken, "a broken link says why");
    }
    for (const Landing& one : landings) {
        for (size_t i = 0; i < kGuard; ++i)
            must(one.memory[i] == kUntouched && one.memory[kGuard + one.bytes + i] == kUntouched, "guards are untouched");
    }
    return 0;
}
