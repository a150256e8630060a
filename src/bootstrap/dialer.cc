#include "bootstrap/dialer.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "bootstrap/listening.h"

namespace ringccl {
namespace {

// RFC 8305 section 5 recommends 250 ms and at least 100; these are machine-room distances.
constexpr std::chrono::milliseconds kStagger{100};
constexpr std::chrono::milliseconds kFirstRetry{10}, kLastRetry{250};

}  // namespace

Dialer::Dialer(asio::io_context& context, const Secret& secret, const Hello& hello, std::vector<Way> ways,
               std::function<void(Socket, const Endpoint&)> won)
    : secret_(secret), hello_(hello), won_(std::move(won)) {
    for (Way& way : ways) attempts_.push_back(std::make_shared<Attempt>(context, std::move(way)));
    for (size_t i = 0; i < attempts_.size(); ++i) asio::co_spawn(context, pursue(i), asio::detached);
}

awaitable<void> Dialer::pursue(size_t number) {
    AttemptPtr attempt = attempts_[number];
    auto retry = kFirstRetry;
    asio::error_code error;
    // Its turn comes after the stagger, or when the one before has failed and cancels the pause.
    attempt->pause.expires_after(kStagger * number);
    if (number > 0) co_await attempt->pause.async_wait(asio::redirect_error(asio::use_awaitable, error));

    for (bool first = true; !over_; first = false) {
        Status tried = co_await attempt_once(*attempt);
        if (over_) co_return;
        if (tried.ok()) tried = confirm(attempt->socket);
        if (tried.ok()) {
            Socket socket = std::move(attempt->socket);
            end();
            won_(std::move(socket), attempt->way.to);
            co_return;
        }
        attempt->error = tried.text();
        if (tried.code() == ringSystemError)
            shortage_.felt();
        else
            shortage_.over();
        asio::error_code ignored;
        attempt->socket.close(ignored);
        if (first && number + 1 < attempts_.size()) attempts_[number + 1]->pause.cancel();
        attempt->pause.expires_after(retry);
        co_await attempt->pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
        retry = std::min(retry * 2, kLastRetry);
    }
}

awaitable<Status> Dialer::attempt_once(Attempt& attempt) {
    using asio::ip::tcp;
    asio::error_code error;
    attempt.stage = "no answer to connect";
    auto address = asio::ip::make_address(attempt.way.to.address, error);
    if (error) co_return failure(ringRemoteError, "not an address on this host: {}", error.message());
    tcp::endpoint to(address, attempt.way.to.port);
    attempt.socket.open(to.protocol(), error);
    if (error) co_return failure(ringSystemError, "socket: {} (errno {})", error.message(), error.value());
    keep_from_exec(attempt.socket);
    if (!attempt.way.from.empty()) {
        // The port is chosen at connect, where it need be unique per destination only.
        int yes = 1;
        ::setsockopt(attempt.socket.native_handle(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
        auto from = asio::ip::make_address(attempt.way.from, error);
        if (!error) attempt.socket.bind({from, 0}, error);
        if (error) co_return failure(ringSystemError, "bind to {}: {}", attempt.way.from, error.message());
    }
    co_await attempt.socket.async_connect(to, asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return failure(ringRemoteError, "{}", error.message());

    // A port that nobody listens on may be given to the very socket that dials it, which then meets itself (RFC 793, figure 8).
    tcp::endpoint local = attempt.socket.local_endpoint(error);
    if (!error && local == to) co_return failure(ringRemoteError, "Connection refused");
    attempt.socket.set_option(tcp::no_delay(true), error);
    attempt.stage = "connected, but nobody accepts";
    co_return co_await introduce(attempt.socket, secret_, hello_);
}

void Dialer::end() {
    over_ = true;
    for (const AttemptPtr& attempt : attempts_) {
        asio::error_code ignored;
        attempt->socket.close(ignored);
        attempt->pause.cancel();
    }
}

std::string Dialer::report() const {
    std::string text;
    for (const AttemptPtr& attempt : attempts_)
        text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", to_text(attempt->way.to),
                            attempt->error.empty() ? attempt->stage : attempt->error);
    return text.empty() ? "no address" : text;
}

std::vector<Dialer::Way> ways_to(const std::vector<Endpoint>& at, const std::vector<Interface>& allowed,
                                 const std::string& filter) {
    std::vector<Dialer::Way> ways;
    for (const Endpoint& endpoint : at) ways.push_back({endpoint, source_for(endpoint.address, allowed, filter)});
    return ways;
}

}  // namespace ringccl
