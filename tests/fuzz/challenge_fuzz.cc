// The handshake with which every connection opens, from either end, with the input as what the other end says; and the first
// message after it. The nonces are random, so a proof is worth nothing in an input: two of the modes put a true one in, to come
// to what lies behind it.
#include <sys/socket.h>
#include <unistd.h>

#include <optional>

#include "bootstrap/challenge.h"
#include "bootstrap/message_io.h"
#include "fuzz/fuzz.h"

namespace ringccl::fuzz {
namespace {

const Secret kSecret = {1, 2, 3};

// A connection whose other end is in the fuzzer's hand. Asio need not know that it is no TCP.
struct Line {
    asio::io_context context{1};
    Socket socket{context};
    int other = -1;

    Line() {
        int ends[2];
        must(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0, "there is a socketpair");
        socket.assign(asio::ip::tcp::v4(), ends[0]);
        other = ends[1];
    }
    ~Line() {
        if (other >= 0) ::close(other);
    }

    void say(std::string_view bytes) {
        while (!bytes.empty()) {
            ssize_t sent = ::send(other, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) return;
            bytes.remove_prefix(static_cast<size_t>(sent));
        }
    }
    std::string hear() {
        char bytes[256];
        ssize_t got = ::read(other, bytes, sizeof bytes);
        return {bytes, static_cast<size_t>(std::max<ssize_t>(got, 0))};
    }
    // The other end has said all; what waits for more ends.
    void finish() {
        ::shutdown(other, SHUT_WR);
        context.restart();
        context.run();
    }
};

std::string true_proof(std::string_view role, std::string_view acceptors, std::string_view dialers, std::string_view hello) {
    std::string message(role);
    message.append("ringccl\1", 8).append(acceptors).append(dialers).append(hello);
    Digest digest = keyed_digest(kSecret, message);
    return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

void accept(Bytes bytes, bool insider) {
    Line line;
    std::optional<Result<Hello>> hello;
    auto whole = [&]() -> awaitable<void> {
        hello.emplace(co_await challenge(line.socket, kSecret, Purpose::lane, 0));
        if (hello->ok() && co_await confirmed(line.socket)) (void)(co_await receive_message(line.socket)).ok();
    };
    asio::co_spawn(line.context, whole(), asio::detached);
    line.context.poll();
    std::string greeting = line.hear();
    must(greeting.size() == 40, "the acceptor greets at once");
    if (insider) {
        std::string hello_bytes(bytes.take(20)), nonce(32, 'd');
        hello_bytes.resize(20);
        line.say(std::string("ringccl\1", 8) + hello_bytes + nonce +
                 true_proof("dialer", std::string_view(greeting).substr(8), nonce, hello_bytes));
    }
    line.say(bytes.rest());
    line.finish();
    must(hello.has_value(), "the handshake ends when the other end does");
    must(insider || !hello->ok(), "nobody gets in without the secret");
}

void dial(Bytes bytes, bool insider) {
    Line line;
    std::optional<Status> met;
    auto whole = [&]() -> awaitable<void> {
        met.emplace(co_await introduce(line.socket, kSecret, Hello{Purpose::lane, 1, 0, 2, 3}));
        if (met->ok() && confirm(line.socket).ok()) (void)(co_await receive_message(line.socket)).ok();
    };
    asio::co_spawn(line.context, whole(), asio::detached);
    line.context.poll();
    must(line.hear().size() == 8, "the dialer says its prefix at once");
    if (insider) {
        std::string nonce(32, 'a');
        line.say(std::string("ringccl\1", 8) + nonce);
        line.context.poll();
        std::string claim = line.hear();
        must(claim.size() == 84, "the claim follows the greeting");
        line.say(true_proof("acceptor", nonce, claim.substr(20, 32), claim.substr(0, 20)));
    }
    line.say(bytes.rest());
    line.finish();
    must(met.has_value(), "the handshake ends when the other end does");
    must(met->ok() == insider, "exactly who knows the secret is believed");
}

}  // namespace
}  // namespace ringccl::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace ringccl::fuzz;
    Bytes bytes(data, std::min<size_t>(size, 1 << 16));
    const uint8_t mode = bytes.byte();
    if (mode & 1)
        dial(bytes, mode & 2);
    else
        accept(bytes, mode & 2);
    return 0;
}
