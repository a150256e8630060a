#include "bootstrap/listening.h"

#include <sys/socket.h>
#include <unistd.h>

#include <asio/ip/tcp.hpp>

#include "base/process.h"
#include "trace/log.h"

namespace ringccl {
namespace {

using asio::ip::tcp;

// Every rank of a large job may knock within one scheduling quantum; the kernel cuts this to net.core.somaxconn.
constexpr int kBacklog = 4096;

Result<Listening::Socket> listen_at(const asio::ip::address& address, uint16_t& port) {
    tcp::endpoint at(address, port);
    // errno is read before the address is put into words, which may change it.
    auto failed = [&](const char* call, int error) {
        return system_failure(
            error, "{} {}", call,
            address.is_unspecified() ? fmt::format("port {}", port) : fmt::format("{}:{}", address.to_string(), port));
    };
    Listening::Socket socket{Fd(::socket(at.data()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
                             address.is_v6()};
    if (!socket.fd) return failed("socket to listen on", errno);
    int fd = socket.fd.get();
    int yes = 1, v6only = address.is_v6() && !address.is_unspecified();
    // Connections of an earlier job in TIME_WAIT do not block a fixed port.
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (address.is_v6()) ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof v6only);
    if (::bind(fd, at.data(), static_cast<socklen_t>(at.size())) != 0) return failed("bind to", errno);
    if (::listen(fd, kBacklog) != 0) return failed("listen on", errno);

    tcp::endpoint bound;
    socklen_t bytes = static_cast<socklen_t>(bound.capacity());
    if (::getsockname(fd, bound.data(), &bytes) != 0) return failed("getsockname of", errno);
    port = bound.port();
    return socket;
}

}  // namespace

Result<Listening> Listening::open(const Settings& settings, uint16_t port) {
    RINGCCL_ASSIGN(auto all, host_interfaces());
    RINGCCL_ASSIGN(auto chosen, choose_interfaces(std::move(all), settings.interface));
    Listening listening;
    listening.owner_ = process_id();

    if (settings.interface.empty()) {
        auto socket = listen_at(asio::ip::address_v6::any(), port);
        // A kernel without IPv6 says EAFNOSUPPORT to the socket, one with IPv6 switched off EADDRNOTAVAIL to the bind.
        if (!socket.ok()) socket = listen_at(asio::ip::address_v4::any(), port);
        if (!socket.ok()) return socket.status();
        listening.sockets_.push_back(socket.take());
    }
    Status unusable;
    for (const Interface& one : chosen) {
        if (!settings.interface.empty()) {
            asio::error_code unknown_scope;
            auto address = asio::ip::make_address(one.address, unknown_scope);
            // The first socket chooses the port and the others follow, since an id has room for one port only.
            auto socket = listen_at(address, port);
            if (!socket.ok()) {
                // A new IPv6 address cannot be used until the kernel knows it to be unique (RFC 4862, 5.4); others can.
                log().info("not listening: {}", socket.status().text());
                unusable = socket.status();
                continue;
            }
            listening.sockets_.push_back(socket.take());
        }
        listening.endpoints_.push_back({one.address, port});
    }
    if (listening.sockets_.empty()) return unusable;
    listening.interfaces_ = std::move(chosen);
    return listening;
}

Listening::~Listening() {
    for (Socket& socket : sockets_)
        if (socket.fd && owner_ == process_id()) ::shutdown(socket.fd.get(), SHUT_RDWR);
}

std::string to_text(const Endpoint& endpoint) {
    bool v6 = endpoint.address.find(':') != std::string::npos;
    return v6 ? fmt::format("[{}]:{}", endpoint.address, endpoint.port) : fmt::format("{}:{}", endpoint.address, endpoint.port);
}

}  // namespace ringccl
