// Running sockets on the calling thread, with a deadline and a flag to stop.
//
// An io_context lives only as long as one call (Door::meet, Bootstrap::exchange) or in the meeting point's thread. Between
// calls a rank holds plain descriptors, because an idle io_context would cost three of them, and because a forked child that
// destroyed one would take the parent's sockets out of the epoll set that both share.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <atomic>
#include <memory>
#include <optional>

#include "base/deadline.h"
#include "base/status.h"
#include "bootstrap/door.h"

namespace ringccl {

using Socket = asio::ip::tcp::socket;
using asio::awaitable;

enum class Outcome { done, deadline, stopped };

template <class Done>
Outcome run_until(asio::io_context& context, Deadline deadline, const std::atomic<bool>& stop, Done done) {
    constexpr std::chrono::milliseconds kStopPoll{25};
    auto guard = asio::make_work_guard(context);
    for (;;) {
        if (done()) return Outcome::done;
        if (stop.load(std::memory_order_acquire)) return Outcome::stopped;
        if (deadline.passed()) return Outcome::deadline;
        context.run_one_for(std::min(kStopPoll, deadline.left()));
    }
}

// Something that this process lacks, descriptors or memory, and that others cannot wait for for ever.
class Shortage {
public:
    void felt() {
        if (!since_) since_ = Deadline::Clock::now();
    }
    void over() { since_.reset(); }
    bool lasts() const {
        constexpr std::chrono::seconds kBearable{2};
        return since_ && Deadline::Clock::now() - *since_ > kBearable;
    }

private:
    std::optional<Deadline::Clock::time_point> since_;
};

// Carries out `body`, where Asio may throw: an io_context needs descriptors and memory to exist.
template <class Body>
auto without_exceptions(const char* what, Body body) -> decltype(body()) {
    try {
        return body();
    } catch (const asio::system_error& error) {
        return system_failure(error.code().value(), "{}", what);
    } catch (const std::exception& error) {
        return failure(ringSystemError, "{}: {}", what, error.what());
    }
}

// Closes the socket when time is up, which ends whatever is waiting for it.
class TimeLimit {
public:
    TimeLimit(Socket& socket, std::chrono::milliseconds span)
        : timer_(socket.get_executor(), span), watched_(std::make_shared<Socket*>(&socket)) {
        timer_.async_wait([watched = watched_](asio::error_code cancelled) {
            if (cancelled || !*watched) return;
            asio::error_code ignored;
            (*watched)->close(ignored);
            *watched = nullptr;
        });
    }
    ~TimeLimit() { *watched_ = nullptr; }
    TimeLimit(const TimeLimit&) = delete;
    TimeLimit& operator=(const TimeLimit&) = delete;

    bool passed() const { return *watched_ == nullptr; }

private:
    asio::steady_timer timer_;
    std::shared_ptr<Socket*> watched_;
};

// Asio opens and accepts sockets that a program started by the user's process would inherit.
inline void keep_from_exec(Socket& socket) {
    ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

inline Endpoint endpoint_of(const asio::ip::tcp::endpoint& at) {
    auto address = at.address();
    // What comes in over IPv4 on a socket of both families is shown as IPv4.
    if (address.is_v6() && address.to_v6().is_v4_mapped())
        address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
    return {address.to_string(), at.port()};
}

}  // namespace ringccl
