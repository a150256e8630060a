// What stands before each slice on a socket. Header and payload follow each other without padding (docs/wire.md).
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "base/operation.h"

namespace ringccl {

constexpr uint32_t kFrameMagic = 0x31464352;  // "RCF1" as bytes; the digit is the version of the format

// Lies on the wire as it lies in memory. Payloads are the users' numbers as their machine writes them, so ranks of different
// byte order could not compute together whatever the header did.
struct FrameHeader {
    uint32_t magic = kFrameMagic;
    uint32_t bytes = 0;  // of payload, which follows
    uint64_t slice = 0;  // number in its link, from 0: a link may use several sockets, and this puts the slices in order again
    Fingerprint print;
};
static_assert(sizeof(FrameHeader) == 40 && std::is_trivially_copyable_v<FrameHeader>);
static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

}  // namespace ringccl
