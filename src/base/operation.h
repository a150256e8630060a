// One call of a user: what is done to which buffers. Plain data, made by the api layer, carried out by the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/op.h"
#include "base/status.h"
#include "base/type.h"
#include "ringccl/ringccl.h"

namespace ringccl {

enum class Kind : uint8_t {
    all_reduce,
    scatter_reduce,
    all_gather,
    broadcast,
    reduce,
    gather,
    scatter,
    all_to_all,
    barrier,
    send,
    recv
};

const char* kind_name(Kind kind);  // "allReduce"
const char* op_name(Op op);        // "sum"

// What all ranks must agree on. It travels in the header of every message and is compared where the message arrives.
struct Fingerprint {
    uint64_t sequence = 0;  // of the communicator for collectives; of the pair and direction for send and recv
    uint64_t count = 0;
    Kind kind = Kind::barrier;  // `send` for both ends of a point-to-point call
    uint8_t type = 0;
    Op op = Op::none;
    uint8_t reserved = 0;
    int32_t root = 0;  // 0 where the kind has none

    // All but `reserved`, which is zero.
    bool operator==(const Fingerprint& other) const {
        return sequence == other.sequence && count == other.count && kind == other.kind && type == other.type &&
               op == other.op && root == other.root;
    }
};
static_assert(sizeof(Fingerprint) == 24);

// "allReduce (operation 17)", "send (message 3 of its pair)".
std::string name_of(const Fingerprint& print);
// How two ranks differ about what should be one operation: ringMismatch, with both ranks, the first field that differs and both
// values. Which of the two ranks comes first makes no difference to the text. ok if they agree.
Status disagreement(int one, const Fingerprint& ones, int other, const Fingerprint& others);

struct Operation {
    Fingerprint print;
    const void* send = nullptr;
    void* recv = nullptr;
    int peer = -1;        // of send and recv
    double scalar = 1.0;  // of premul, when the type is a float; integers keep their bits in scalar_bits
    uint64_t scalar_bits = 0;

    ringDataType_t type() const { return static_cast<ringDataType_t>(print.type); }
};

}  // namespace ringccl
