// Carries descriptors between the processes of one host: a unix datagram socket per rank, with a random abstract name that
// travels over the authenticated bootstrap, and a keyed digest on every letter, so that nobody else's letter is opened.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "bootstrap/secret.h"
#include "device/block.h"

namespace ringccl {

// What a letter is about; the descriptor is attached, but for memory of a device, which has a name instead.
struct Letter {
    enum class Kind : uint32_t { arena, block, event, device_block };
    Kind kind = Kind::block;
    int32_t from = 0;
    uint64_t id = 0;     // of a block
    uint64_t bytes = 0;  // of the arena or block
    Block::DeviceName name{};
};

class Courier {
public:
    static Result<std::unique_ptr<Courier>> open(const Secret& secret, int rank);

    const std::string& name() const { return name_; }  // printable; what others send to
    int fd() const { return socket_.get(); }

    // Sends without waiting. false: the receiver's queue is full, try again. An error: nobody there, or no permission.
    Result<bool> send(const std::string& to, Letter letter, int descriptor = -1);

    struct Received {
        Letter letter;
        Fd descriptor;
    };
    // What has come, without waiting; letters with a wrong digest are dropped.
    Result<std::vector<Received>> receive();

private:
    Courier() = default;

    Fd socket_;
    std::string name_;
    Secret key_{};
    int rank_ = 0;
};

}  // namespace ringccl
