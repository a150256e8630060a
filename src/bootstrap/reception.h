// Lets in whoever passes the challenge: the accepting half of a Door and of the meeting point.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "bootstrap/challenge.h"
#include "bootstrap/listening.h"
#include "bootstrap/strangers.h"

namespace ringccl {

// One that has proved itself but has not yet said that this is the connection it will use.
struct Admitted {
    Fd fd;
    bool v6 = false;
    Hello hello;
};

class Reception {
public:
    using Arrival = std::function<void(Socket, const Hello&)>;

    // Accepts on the sockets of `listening`, which stays the owner and must outlive this, while `context` runs. `arrived` is
    // called for each connection that has passed and is confirmed.
    Reception(asio::io_context& context, const Listening& listening, const Secret& secret, Purpose purpose, int rank,
              Strangers& strangers, Arrival arrived);
    ~Reception();

    // Goes on with connections that an earlier reception had to give back.
    void resume(std::vector<Admitted> admitted);
    // No more is accepted. Returns those that wait for their dialer's confirmation; who has not proved itself is dropped, which
    // its dialer notices and tries again.
    std::vector<Admitted> retire();

    // The last failure of accept(), e.g. out of descriptors; empty if all is well.
    const std::string& trouble() const { return trouble_; }
    // Whether nobody can be accepted for want of descriptors, and that for a while.
    bool starved() const { return shortage_.lasts(); }

private:
    using Acceptor = asio::ip::tcp::acceptor;
    struct Guest {
        explicit Guest(asio::io_context& context) : socket(context) {}
        Socket socket;
        asio::ip::tcp::endpoint from;
        Hello hello;
        bool admitted = false;
    };
    using GuestPtr = std::shared_ptr<Guest>;

    awaitable<void> accept(Acceptor& acceptor);
    awaitable<void> examine(GuestPtr guest);
    awaitable<void> await_confirmation(GuestPtr guest);
    void forget(const GuestPtr& guest);
    bool drop_oldest();

    asio::io_context& context_;
    const Secret& secret_;
    const Purpose purpose_;
    const int rank_;
    Strangers& strangers_;
    Arrival arrived_;
    std::list<Acceptor> acceptors_;
    std::list<GuestPtr> guests_;  // oldest first
    std::string trouble_;
    Shortage shortage_;
};

}  // namespace ringccl
