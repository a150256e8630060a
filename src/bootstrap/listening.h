// A TCP port of this rank, on every address that may be used.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "base/knobs.h"
#include "base/status.h"
#include "bootstrap/door.h"
#include "bootstrap/interfaces.h"

namespace ringccl {

// The sockets are closed with shutdown(), so that a forked child that still holds copies of them does not keep the port
// alive; in such a child itself they are only closed.
class Listening {
public:
    struct Socket {
        Fd fd;
        bool v6 = false;
    };

    // `port` 0: the kernel chooses. Without a filter in settings.interface it is one socket for every address, IPv6 and IPv4.
    // ringSystemError: the port is taken (errno EADDRINUSE is in the text), or no sockets. ringInvalidUsage: a bad filter.
    static Result<Listening> open(const Settings& settings, uint16_t port);
    Listening() = default;
    Listening(Listening&&) = default;
    Listening& operator=(Listening&&) = delete;
    ~Listening();

    const std::vector<Endpoint>& endpoints() const { return endpoints_; }
    const std::vector<Interface>& interfaces() const { return interfaces_; }
    const std::vector<Socket>& sockets() const { return sockets_; }

private:
    std::vector<Socket> sockets_;
    std::vector<Endpoint> endpoints_;
    std::vector<Interface> interfaces_;
    int owner_ = 0;  // process id
};

// "10.0.0.1:4000", "[fd00::1]:4000"
std::string to_text(const Endpoint& endpoint);

}  // namespace ringccl
