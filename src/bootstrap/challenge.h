// The mutual keyed challenge with which every connection opens. Each end proves that it knows the secret, by an HMAC over two
// fresh nonces and what the connection is for; docs/wire.md draws the four messages.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "bootstrap/loop.h"
#include "bootstrap/secret.h"

namespace ringccl {

enum class Purpose : uint32_t { meeting = 1, lane = 2, lifeline = 3 };

// Who dials whom, and what for.
struct Hello {
    Purpose purpose = Purpose::lane;
    int32_t from = 0;
    int32_t to = 0;
    int32_t lane = 0;
    int32_t index = 0;
};

// How long a connection may take to prove itself.
constexpr std::chrono::milliseconds kPatience{2000};

// The accepting end, up to and with its own proof. Returns what the dialer said once that is proved. Nothing is sent and
// nothing awaited between the proof and the return, so that a caller who sees no result knows that the dialer has none either.
// ringRemoteError: a stranger; the text says what it did. ringInvalidUsage: a dialer of ours that looks for another rank, or
// has withdrawn.
awaitable<Result<Hello>> challenge(Socket& socket, const Secret& secret, Purpose purpose, int rank);

// The dialing end, up to the acceptor's proof. It may wait for the greeting without limit, for an acceptor may be late to
// accept; from there on kPatience holds. ringRemoteError: the text says what the other end did.
awaitable<Status> introduce(Socket& socket, const Secret& secret, const Hello& hello);

// A dialer tries several addresses at once and may be let in at two. It tells the one connection that it will use, and the
// acceptor takes no connection before it has been told.
constexpr uint8_t kConfirm = 0x06;
Status confirm(Socket& socket);
// Waits until the dialer confirms; false: it did not, and has closed.
awaitable<bool> confirmed(Socket& socket);

}  // namespace ringccl
