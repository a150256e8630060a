#include "transports/tcp/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ringccl {
namespace {

// On links of several sockets: a socket takes no new bytes while this many wait unsent in it, however large its buffer. So
// a slow one holds little, and the slices go to those that move.
constexpr int kUnsentBytes = 128 << 10;

// A host that vanished without a word is noticed on an idle socket after 10 + 4 * 5 seconds.
constexpr int kKeepIdleSeconds = 10, kKeepIntervalSeconds = 5, kKeepProbes = 4;

Status set_option(int fd, int level, int option, int64_t value, const char* name, const std::string& peer) {
    int number = static_cast<int>(value);
    if (::setsockopt(fd, level, option, &number, sizeof number) == 0) return {};
    return system_failure(errno, "setting {} to {} on the socket to {}", name, value, peer);
}

std::string remote_address(int fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    char host[NI_MAXHOST], port[NI_MAXSERV];
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::getpeername(fd, generic, &size) != 0 ||
        ::getnameinfo(generic, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return "an address that is no longer known";
    return address.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Status set_options(int fd, const Settings& settings, const std::string& peer) {
    int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return system_failure(errno, "making the socket to {} non-blocking", peer);
    RINGCCL_TRY(set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY", peer));
    if (settings.socket_buffer > 0) {  // a fixed size ends the kernel's own tuning, so only on request
        RINGCCL_TRY(set_option(fd, SOL_SOCKET, SO_SNDBUF, settings.socket_buffer, "SO_SNDBUF", peer));
        RINGCCL_TRY(set_option(fd, SOL_SOCKET, SO_RCVBUF, settings.socket_buffer, "SO_RCVBUF", peer));
    }
    if (settings.sockets > 1)
        RINGCCL_TRY(set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentBytes, "TCP_NOTSENT_LOWAT", peer));
    // No TCP_USER_TIMEOUT: it also counts the time in which a live peer lets its receive window stay closed, and would end the
    // connection to a rank that merely computes for long while a finished broadcast waits in its socket.
    RINGCCL_TRY(set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE", peer));
    RINGCCL_TRY(set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleSeconds, "TCP_KEEPIDLE", peer));
    RINGCCL_TRY(set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepIntervalSeconds, "TCP_KEEPINTVL", peer));
    return set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepProbes, "TCP_KEEPCNT", peer);
}

}  // namespace

Result<TcpSocket> TcpSocket::adopt(Fd fd, int rank, int lane, const Settings& settings) {
    std::string peer = fmt::format("rank {} at {} (lane {})", rank, remote_address(fd.get()), lane);
    TcpSocket socket(std::move(fd), std::move(peer));
    RINGCCL_TRY(set_options(socket.fd(), settings, socket.peer()));
    return socket;
}

TcpSocket::~TcpSocket() {
    if (!fd_) return;
    // Say the end now: the close alone would not while a forked child holds a copy of the descriptor.
    ::shutdown(fd_.get(), SHUT_WR);
    // A close with unread bytes in the socket sends a reset instead of an end (RFC 1122, 4.2.2.13), and a reset throws away
    // what the peer has not been sent yet: the last slices of an operation that this rank has finished. So drop first what
    // nobody will read; MSG_TRUNC discards without copying.
    int most_reads = 64;  // a peer that goes on sending must not keep us here
    // Not through recv(), of which sanitizers believe that it writes to the address given.
    while (most_reads-- > 0 &&
           ::syscall(SYS_recvfrom, fd_.get(), nullptr, 1 << 20, MSG_TRUNC | MSG_DONTWAIT, nullptr, nullptr) > 0)
        continue;
}

void TcpSocket::end() const {
    ::shutdown(fd_.get(), SHUT_RDWR);
}

Status TcpSocket::lost(int error, const std::string& meanwhile) const {
    switch (error) {
        case EPIPE:
        case ECONNRESET:
        case ETIMEDOUT:
        case EHOSTUNREACH:
        case ENETUNREACH:
        case ENETDOWN:
            return failure(ringRemoteError, "the connection to {} broke while {}: {} (errno {}); see what that rank reports",
                           peer_, meanwhile, std::strerror(error), error);
        default:
            return system_failure(error, "the connection to {} cannot be used, {}", peer_, meanwhile);
    }
}

}  // namespace ringccl
