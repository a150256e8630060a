// Reaches one rank over whichever of its addresses works: all are tried, a little staggered (RFC 8305, "happy eyeballs"), and
// tried again until one answers the challenge, for the peer may come late.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bootstrap/challenge.h"
#include "bootstrap/interfaces.h"

namespace ringccl {

class Dialer {
public:
    struct Way {
        Endpoint to;
        std::string from;  // the local address to leave by; "" as the kernel likes
    };

    // Dials while `context` runs. `won` is called once, with the confirmed connection; the other attempts end then.
    Dialer(asio::io_context& context, const Secret& secret, const Hello& hello, std::vector<Way> ways,
           std::function<void(Socket, const Endpoint&)> won);

    // Whether no address can even be tried, for something that this process lacks, and that for a while.
    bool starved() const { return shortage_.lasts(); }
    // Every address with its last error: "10.0.0.1:4000 (Connection refused), 10.0.0.2:4000 (no answer)".
    std::string report() const;

private:
    struct Attempt {
        Attempt(asio::io_context& context, Way way) : way(std::move(way)), socket(context), pause(context) {}
        Way way;
        Socket socket;
        asio::steady_timer pause;
        const char* stage = "not tried yet";
        std::string error;  // of the last complete try
    };
    using AttemptPtr = std::shared_ptr<Attempt>;

    awaitable<void> pursue(size_t number);
    awaitable<Status> attempt_once(Attempt& attempt);
    void end();

    const Secret& secret_;
    const Hello hello_;
    std::vector<AttemptPtr> attempts_;
    std::function<void(Socket, const Endpoint&)> won_;
    Shortage shortage_;
    bool over_ = false;
};

// The ways to `at`, leaving by the interfaces that settings.interface allows.
std::vector<Dialer::Way> ways_to(const std::vector<Endpoint>& at, const std::vector<Interface>& allowed,
                                 const std::string& filter);

}  // namespace ringccl
