#include "bootstrap/reception.h"

#include <algorithm>

#include "trace/log.h"

namespace ringccl {
namespace {

// More unproved connections than this are a flood: the oldest make room.
constexpr size_t kMostGuests = 1024;
constexpr std::chrono::milliseconds kPause{50};

}  // namespace

Reception::Reception(asio::io_context& context, const Listening& listening, const Secret& secret, Purpose purpose, int rank,
                     Strangers& strangers, Arrival arrived)
    : context_(context), secret_(secret), purpose_(purpose), rank_(rank), strangers_(strangers), arrived_(std::move(arrived)) {
    for (const Listening::Socket& socket : listening.sockets()) {
        using asio::ip::tcp;
        Acceptor& acceptor = acceptors_.emplace_back(context);
        acceptor.assign(socket.v6 ? tcp::v6() : tcp::v4(), socket.fd.get());
        asio::co_spawn(context, accept(acceptor), asio::detached);
    }
}

Reception::~Reception() {
    retire();
}

awaitable<void> Reception::accept(Acceptor& acceptor) {
    asio::steady_timer pause(context_);
    for (;;) {
        auto guest = std::make_shared<Guest>(context_);
        asio::error_code error;
        co_await acceptor.async_accept(guest->socket, guest->from, asio::redirect_error(asio::use_awaitable, error));
        if (error == asio::error::operation_aborted || !acceptor.is_open()) co_return;
        if (error) {
            // Most likely no descriptor is left. Silent strangers hold some; else a pause, for the connection that cannot be
            // accepted stays in the queue and would be reported again at once.
            if (trouble_.empty()) log().warn("cannot accept connections: {} (errno {})", error.message(), error.value());
            trouble_ = fmt::format("accept: {} (errno {}); raise the limit (ulimit -n) if descriptors are short",
                                   error.message(), error.value());
            if (drop_oldest()) continue;
            shortage_.felt();
            asio::error_code ignored;
            pause.expires_after(kPause);
            co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
            if (!acceptor.is_open()) co_return;
            continue;
        }
        shortage_.over();
        if (guests_.size() >= kMostGuests) drop_oldest();
        asio::error_code ignored;
        keep_from_exec(guest->socket);
        guest->socket.set_option(asio::ip::tcp::no_delay(true), ignored);
        guests_.push_back(guest);
        asio::co_spawn(context_, examine(guest), asio::detached);
    }
}

awaitable<void> Reception::examine(GuestPtr guest) {
    Result<Hello> hello = co_await challenge(guest->socket, secret_, purpose_, rank_);
    if (std::find(guests_.begin(), guests_.end(), guest) == guests_.end()) co_return;  // dismissed
    if (!hello.ok()) {
        Endpoint from = endpoint_of(guest->from);
        // Often: dialers try all addresses at once, and one such as 172.17.0.1 exists on many hosts.
        if (hello.status().code() == ringInvalidUsage)
            log().debug("{}: {}", to_text(from), hello.status().text());
        else
            strangers_.note(from, hello.status().text());
        forget(guest);
        co_return;
    }
    guest->hello = hello.value();
    guest->admitted = true;
    co_await await_confirmation(guest);
}

// Without a time limit: it knows the secret, and its host may be busy.
awaitable<void> Reception::await_confirmation(GuestPtr guest) {
    bool chosen = co_await confirmed(guest->socket);
    if (std::find(guests_.begin(), guests_.end(), guest) == guests_.end()) co_return;  // retired
    forget(guest);
    if (chosen) arrived_(std::move(guest->socket), guest->hello);
}

void Reception::forget(const GuestPtr& guest) {
    guests_.remove(guest);
}

bool Reception::drop_oldest() {
    auto oldest = std::find_if(guests_.begin(), guests_.end(), [](const GuestPtr& guest) { return !guest->admitted; });
    if (oldest == guests_.end()) return false;
    strangers_.note(endpoint_of((*oldest)->from), "had not proved itself when room was needed");
    asio::error_code ignored;
    (*oldest)->socket.close(ignored);
    guests_.erase(oldest);
    return true;
}

void Reception::resume(std::vector<Admitted> admitted) {
    for (Admitted& one : admitted) {
        auto guest = std::make_shared<Guest>(context_);
        guest->socket.assign(one.v6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), one.fd.get());
        one.fd.release();
        guest->hello = one.hello;
        guest->admitted = true;
        guests_.push_back(guest);
        asio::co_spawn(context_, await_confirmation(guest), asio::detached);
    }
}

std::vector<Admitted> Reception::retire() {
    for (Acceptor& acceptor : acceptors_)
        if (acceptor.is_open()) acceptor.release();  // the descriptor is Listening's
    std::vector<Admitted> admitted;
    for (const GuestPtr& guest : std::exchange(guests_, {})) {
        asio::error_code ignored;
        if (guest->admitted && guest->socket.is_open()) {
            bool v6 = guest->socket.local_endpoint(ignored).protocol() == asio::ip::tcp::v6();
            admitted.push_back({Fd(guest->socket.release()), v6, guest->hello});
        } else {
            guest->socket.close(ignored);  // perhaps one of ours that came too late: no stranger
        }
    }
    return admitted;
}

}  // namespace ringccl
