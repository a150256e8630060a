// One connected TCP socket to a rank, non-blocking, with the options that the data path wants.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/knobs.h"
#include "base/status.h"

namespace ringccl {

class TcpSocket {
public:
    // Takes over a connected socket and sets its options. ringSystemError if the kernel refuses one.
    static Result<TcpSocket> adopt(Fd fd, int rank, int lane, const Settings& settings);
    TcpSocket(TcpSocket&&) noexcept = default;
    TcpSocket& operator=(TcpSocket&&) = delete;
    // Everything written so far still reaches the peer, provided that the peer does not send any more.
    ~TcpSocket();

    // Nothing goes either way any more.
    void end() const;

    int fd() const { return fd_.get(); }
    // For error texts: "rank 3 at 10.0.0.2:4711 (lane 0)".
    const std::string& peer() const { return peer_; }

    // The failure of a send or recv on this socket: ringRemoteError if the peer or the way to it is gone, else
    // ringSystemError. `meanwhile` is e.g. "slice 3 was being sent to it".
    Status lost(int error, const std::string& meanwhile) const;

private:
    TcpSocket(Fd fd, std::string peer) : fd_(std::move(fd)), peer_(std::move(peer)) {}

    Fd fd_;
    std::string peer_;
};

}  // namespace ringccl
