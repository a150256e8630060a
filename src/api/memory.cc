// Memory, registrations and user-made operations.
#include <bit>
#include <cmath>
#include <cstring>

#include "api/arguments.h"
#include "api/entry.h"

using namespace ringccl;

namespace {

double half_to_double(uint16_t bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double value = exponent == 0    ? std::ldexp(mantissa, -24)
                   : exponent == 31 ? (mantissa != 0 ? NAN : INFINITY)
                                    : std::ldexp(1024 + mantissa, exponent - 25);
    return (bits & 0x8000) != 0 ? -value : value;
}

// Exponent and fraction fit into a binary16's, whose bias is larger by 8.
double e4m3_to_double(uint8_t bits) {
    if ((bits & 0x7f) == 0x7f) return NAN;
    return half_to_double(static_cast<uint16_t>((bits & 0x80) << 8 | (bits & 0x7f) << 7)) * 0x1p8;
}

// The scalar of a pre-multiplied sum: floats as a double, which holds every narrower one exactly; integers as their bytes.
UserOp read_scalar(const void* scalar, ringDataType_t type) {
    UserOp op{type, 1.0, 0};
    std::memcpy(&op.bits, scalar, type_size(type));  // little end first, as everything here
    switch (type) {
        case ringFloat16:
            op.scalar = half_to_double(static_cast<uint16_t>(op.bits));
            break;
        case ringBfloat16:
            op.scalar = std::bit_cast<float>(static_cast<uint32_t>(op.bits) << 16);
            break;
        case ringFloat8e4m3:
            op.scalar = e4m3_to_double(static_cast<uint8_t>(op.bits));
            break;
        case ringFloat8e5m2:
            op.scalar = half_to_double(static_cast<uint16_t>(op.bits << 8));
            break;
        case ringFloat32:
            op.scalar = std::bit_cast<float>(static_cast<uint32_t>(op.bits));
            break;
        case ringFloat64:
            op.scalar = std::bit_cast<double>(op.bits);
            break;
        default:
            break;
    }
    return op;
}

}  // namespace

ringResult_t ringMemAlloc(void** ptr, size_t bytes) {
    return entry("ringMemAlloc", [&] { return MemoryTable::of_process().allocate(ptr, bytes); });
}

ringResult_t ringMemFree(void* ptr) {
    return entry("ringMemFree", [&] { return MemoryTable::of_process().free(ptr); });
}

ringResult_t ringCommRegister(ringComm_t comm, void* buffer, size_t bytes, void** handle) {
    return entry("ringCommRegister", [&]() -> Status {
        RINGCCL_ASSIGN(CommPin pin, find_working(comm, "ringCommRegister"));
        if (buffer == nullptr || bytes == 0 || handle == nullptr)
            return failure(ringInvalidArgument, "ringCommRegister: {} must not be {}",
                           buffer == nullptr ? "buffer"
                           : bytes == 0      ? "bytes"
                                             : "handle",
                           bytes == 0 && buffer ? "0" : "NULL");
        std::shared_ptr<Block> block;
        if (PeerMemory* memory = pin->device().peer_memory()) {
            auto exported = memory->export_allocation(buffer);
            if (exported.ok()) block = exported.take();  // else it is copied, as memory that is not registered
        }
        *handle = pin->registrations().add(buffer, bytes, std::move(block));
        return {};
    });
}

ringResult_t ringCommDeregister(ringComm_t comm, void* handle) {
    return entry("ringCommDeregister", [&]() -> Status {
        RINGCCL_ASSIGN(CommPin pin, find_communicator(comm, "ringCommDeregister"));
        return pin->registrations().remove(handle);
    });
}

ringResult_t ringRedOpCreatePreMulSum(ringRedOp_t* op, const void* scalar, ringDataType_t type, ringComm_t comm) {
    return entry("ringRedOpCreatePreMulSum", [&]() -> Status {
        RINGCCL_ASSIGN(CommPin pin, find_working(comm, "ringRedOpCreatePreMulSum"));
        if (op == nullptr || scalar == nullptr)
            return failure(ringInvalidArgument, "ringRedOpCreatePreMulSum: {} is NULL", op == nullptr ? "op" : "scalar");
        if (type_size(type) == 0)
            return failure(ringInvalidArgument, "ringRedOpCreatePreMulSum: {} is not a data type", static_cast<int>(type));
        RINGCCL_ASSIGN(const int made, pin->ops().add(read_scalar(scalar, type)));
        *op = static_cast<ringRedOp_t>(made);
        return {};
    });
}

ringResult_t ringRedOpDestroy(ringRedOp_t op, ringComm_t comm) {
    return entry("ringRedOpDestroy", [&]() -> Status {
        RINGCCL_ASSIGN(CommPin pin, find_communicator(comm, "ringRedOpDestroy"));
        return pin->ops().remove(op);
    });
}
