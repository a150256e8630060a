// Where ranks of a test program run and keep their buffers, if not on the host. Tests are written once; a program whose ranks
// run on devices says so before its first test.
#pragma once

#include <cstddef>

#include "support/member.h"

namespace ringccl::test {

class DeviceSide {
public:
    virtual ~DeviceSide() = default;

    // The one of this program; null: the host.
    static DeviceSide*& of_program() {
        static DeviceSide* side = nullptr;
        return side;
    }

    // Before the rank is made, in its thread.
    virtual Verdict prepare(ringConfig_t& config, int rank) = 0;
    // The rank's own stream, where the test has not given it one.
    virtual void* stream(int rank) = 0;
    // Device memory for the rank, the same at each call with that number and size, `shift` bytes behind a boundary of 64.
    virtual std::byte* memory(const Member& me, int number, size_t bytes, size_t shift) = 0;
    // Copies between host and device in the order of the rank's stream.
    virtual Verdict copy(const Member& me, std::byte* to, const std::byte* from, size_t bytes) = 0;
    // Waits for the rank's stream, and tells failures of the communicator that came meanwhile.
    virtual Verdict wait(const Member& me) = 0;
};

inline Verdict enter_side(Member& me, ringConfig_t& config) {
    DeviceSide* side = DeviceSide::of_program();
    if (side == nullptr) return good();
    Verdict ready = side->prepare(config, me.rank);
    if (ready && me.stream == nullptr) me.stream = side->stream(me.rank);
    return ready;
}

// After a call in which the rank's part may still be under way: on a device, where all calls are queued.
inline Verdict await_side(const Member& me) {
    DeviceSide* side = DeviceSide::of_program();
    return side == nullptr ? good() : side->wait(me);
}

}  // namespace ringccl::test
