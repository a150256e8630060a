#include "bootstrap/challenge.h"

#include <asio/read.hpp>
#include <asio/write.hpp>
#include <cstring>

namespace ringccl {
namespace {

// The last byte is the version of the handshake.
constexpr uint8_t kPrefix[8] = {'r', 'i', 'n', 'g', 'c', 'c', 'l', 1};

using Nonce = std::array<uint8_t, 32>;

struct Greeting {
    std::array<uint8_t, 8> prefix;
    Nonce nonce;
};

struct Claim {
    std::array<uint8_t, 8> prefix;
    std::array<uint8_t, 20> hello;
    Nonce nonce;
    Digest proof;
};
static_assert(sizeof(Greeting) == 40 && sizeof(Claim) == 92);

std::array<uint8_t, 20> packed(const Hello& hello) {
    const uint32_t words[] = {static_cast<uint32_t>(hello.purpose), static_cast<uint32_t>(hello.from),
                              static_cast<uint32_t>(hello.to), static_cast<uint32_t>(hello.lane),
                              static_cast<uint32_t>(hello.index)};
    std::array<uint8_t, 20> bytes;
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(words[i / 4] >> (24 - 8 * (i % 4)));
    return bytes;
}

Hello unpacked(const std::array<uint8_t, 20>& bytes) {
    uint32_t words[5] = {};
    for (size_t i = 0; i < bytes.size(); ++i) words[i / 4] = words[i / 4] << 8 | bytes[i];
    return {static_cast<Purpose>(words[0]), static_cast<int32_t>(words[1]), static_cast<int32_t>(words[2]),
            static_cast<int32_t>(words[3]), static_cast<int32_t>(words[4])};
}

// The role is part of what is proved: a stranger cannot send an end's own proof back to it.
Digest proof(const Secret& secret, std::string_view role, const Nonce& acceptors, const Nonce& dialers,
             const std::array<uint8_t, 20>& hello) {
    std::string message(role);
    auto add = [&](const auto& bytes) { message.append(reinterpret_cast<const char*>(std::data(bytes)), std::size(bytes)); };
    add(kPrefix);
    add(acceptors);
    add(dialers);
    add(hello);
    return keyed_digest(secret, message);
}

bool same_prefix(const std::array<uint8_t, 8>& prefix) {
    return std::memcmp(prefix.data(), kPrefix, sizeof kPrefix) == 0;
}

std::string other_protocol(const std::array<uint8_t, 8>& prefix) {
    if (std::memcmp(prefix.data(), kPrefix, sizeof kPrefix - 1) == 0)
        return fmt::format("speaks version {} of the handshake, this library version {}", prefix.back(), kPrefix[7]);
    return "speaks another protocol";
}

// Writes a few bytes that a fresh or idle connection's buffer always holds, without waiting.
Status write_now(Socket& socket, asio::const_buffer bytes) {
    asio::error_code error;
    socket.non_blocking(true, error);
    size_t sent = socket.write_some(bytes, error);
    if (error) return failure(ringRemoteError, "{}", error.message());
    if (sent != bytes.size()) return failure(ringRemoteError, "took only {} of {} bytes", sent, bytes.size());
    return {};
}

Status not_read(const asio::error_code& error, size_t got, const TimeLimit& limit) {
    if (limit.passed()) return failure(ringRemoteError, "{} bytes within {} ms", got, kPatience.count());
    if (error == asio::error::eof) return failure(ringRemoteError, "closed after {} bytes", got);
    return failure(ringRemoteError, "{} after {} bytes", error.message(), got);
}

}  // namespace

awaitable<Result<Hello>> challenge(Socket& socket, const Secret& secret, Purpose purpose, int rank) {
    TimeLimit limit(socket, kPatience);
    asio::error_code error;
    Greeting greeting;
    std::memcpy(greeting.prefix.data(), kPrefix, sizeof kPrefix);
    if (Status random = fill_random(greeting.nonce); !random.ok()) co_return random;
    // If this fails, the peer has gone; reading tells what it was.
    (void)write_now(socket, asio::buffer(&greeting, sizeof greeting)).ok();

    // The prefix by itself, so that whoever speaks another protocol is known by its first word.
    Claim claim;
    size_t got =
        co_await asio::async_read(socket, asio::buffer(claim.prefix), asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return not_read(error, got, limit);
    if (!same_prefix(claim.prefix)) co_return failure(ringRemoteError, "{}", other_protocol(claim.prefix));
    auto rest = asio::buffer(reinterpret_cast<uint8_t*>(&claim) + got, sizeof claim - got);
    size_t more = co_await asio::async_read(socket, rest, asio::redirect_error(asio::use_awaitable, error));
    // A dialer that was let in at another of our addresses, or had to give up.
    if (error && more == 0 && !limit.passed()) co_return failure(ringInvalidUsage, "a rank withdrew before it proved itself");
    if (error) co_return not_read(error, got + more, limit);
    if (!same_digest(claim.proof, proof(secret, "dialer", greeting.nonce, claim.nonce, claim.hello)))
        co_return failure(ringRemoteError, "does not know the secret of this communicator (another or an older job?)");

    Hello hello = unpacked(claim.hello);
    if (hello.purpose != purpose || hello.to != rank)
        co_return failure(ringInvalidUsage, "rank {} of this communicator looked for rank {} here", hello.from, hello.to);
    Digest mine = proof(secret, "acceptor", greeting.nonce, claim.nonce, claim.hello);
    if (Status sent = write_now(socket, asio::buffer(mine)); !sent.ok()) co_return sent;
    co_return hello;
}

awaitable<Status> introduce(Socket& socket, const Secret& secret, const Hello& hello) {
    asio::error_code error;
    Claim claim;
    std::memcpy(claim.prefix.data(), kPrefix, sizeof kPrefix);
    // At once, so that an acceptor can tell a dialer that closes again from somebody who only tries ports.
    if (Status sent = write_now(socket, asio::buffer(claim.prefix)); !sent.ok()) co_return sent;

    Greeting greeting;
    size_t got = co_await asio::async_read(socket, asio::buffer(&greeting, sizeof greeting),
                                           asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::eof) co_return failure(ringRemoteError, "closed after {} bytes", got);
    if (error) co_return failure(ringRemoteError, "{}", error.message());
    if (!same_prefix(greeting.prefix)) co_return failure(ringRemoteError, "{}", other_protocol(greeting.prefix));

    TimeLimit limit(socket, kPatience);
    claim.hello = packed(hello);
    if (Status random = fill_random(claim.nonce); !random.ok()) co_return random;
    claim.proof = proof(secret, "dialer", greeting.nonce, claim.nonce, claim.hello);
    auto rest = asio::buffer(claim.hello.data(), sizeof claim - sizeof claim.prefix);
    if (Status sent = write_now(socket, rest); !sent.ok()) co_return sent;

    Digest theirs;
    got = co_await asio::async_read(socket, asio::buffer(theirs), asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::eof || error == asio::error::connection_reset)
        co_return failure(ringRemoteError, "turned us away: another rank or another job listens there");
    if (error) co_return not_read(error, got, limit);
    if (!same_digest(theirs, proof(secret, "acceptor", greeting.nonce, claim.nonce, claim.hello)))
        co_return failure(ringRemoteError, "does not know the secret of this communicator");
    co_return Status();
}

Status confirm(Socket& socket) {
    return write_now(socket, asio::buffer(&kConfirm, 1));
}

// Waits for readiness and reads in the same step: if the loop ends between two steps, no byte has been lost.
awaitable<bool> confirmed(Socket& socket) {
    for (;;) {
        asio::error_code error;
        co_await socket.async_wait(Socket::wait_read, asio::redirect_error(asio::use_awaitable, error));
        uint8_t byte = 0;
        if (!error) socket.read_some(asio::buffer(&byte, 1), error);
        if (error == asio::error::would_block) continue;
        co_return !error && byte == kConfirm;
    }
}

}  // namespace ringccl
