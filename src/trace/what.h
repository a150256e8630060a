// What an operation is, in one word that one atomic store puts on record.
#pragma once

#include "base/operation.h"

namespace ringccl {

struct What {
    Kind kind = Kind::barrier;
    uint8_t type = 0;
    Op op = Op::none;
    int32_t where = 0;  // root or peer

    uint64_t packed() const {
        return static_cast<uint64_t>(kind) | uint64_t{type} << 8 | static_cast<uint64_t>(op) << 16 |
               uint64_t{static_cast<uint32_t>(where)} << 32;
    }
    static What of(uint64_t packed) {
        return {static_cast<Kind>(packed & 0xff), static_cast<uint8_t>(packed >> 8), static_cast<Op>(packed >> 16 & 0xff),
                static_cast<int32_t>(static_cast<uint32_t>(packed >> 32))};
    }
};

}  // namespace ringccl
