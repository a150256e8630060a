#include "api/arguments.h"

#include <cstring>

#include "device/cuda_module.h"

namespace ringccl {
namespace {

// How many times `count` elements each buffer holds on this rank, and where in-place calls put the smaller one; 0: not used
// here.
struct Extent {
    size_t send, recv;
    bool overlap_allowed;
    size_t send_at, recv_at;  // in place: send + send_at * count == recv + recv_at * count
    const char* in_place;     // the right expression
};

Extent extent_of(const Call& call, int rank, int size) {
    const auto n = static_cast<size_t>(size), r = static_cast<size_t>(rank), root = static_cast<size_t>(call.root);
    const bool at_root = rank == call.root;
    switch (call.kind) {
        case Kind::all_reduce:
            return {1, 1, true, 0, 0, "send == recv"};
        case Kind::scatter_reduce:
            return {n, 1, true, r, 0, "recv == send + rank * recvCount"};
        case Kind::all_gather:
            return {1, n, true, 0, r, "send == recv + rank * sendCount"};
        case Kind::broadcast:
            return {at_root ? 1u : 0u, 1, true, 0, 0, "send == recv"};
        case Kind::reduce:
            return {1, at_root ? 1u : 0u, true, 0, 0, "send == recv"};
        case Kind::gather:
            return {1, at_root ? n : 0u, true, 0, root, "send == recv + root * count"};
        case Kind::scatter:
            return {at_root ? n : 0u, 1, true, root, 0, "recv == send + root * count"};
        case Kind::all_to_all:
            return {n, n, false, 0, 0, "no overlap at all"};
        case Kind::barrier:
            return {0, 0, false, 0, 0, ""};
        case Kind::send:
            return {1, 0, false, 0, 0, ""};
        case Kind::recv:
            return {0, 1, false, 0, 0, ""};
    }
    return {};
}

Status check_buffers(const Call& call, const Extent& extent, size_t element) {
    const size_t most = std::max(extent.send, extent.recv);
    // PTRDIFF_MAX bounds every object, and so every count that can be meant.
    if (most != 0 && call.count > static_cast<size_t>(PTRDIFF_MAX) / element / most)
        return failure(ringInvalidArgument, "{}: count {} of {} is more than any buffer can hold ({} times {} bytes)",
                       call.name, call.count, type_name(call.type), most, element);
    if (call.count == 0) return {};
    const size_t bytes = call.count * element;
    if (extent.send != 0 && call.send == nullptr)
        return failure(ringInvalidArgument, "{}: the send buffer is NULL but count is {}", call.name, call.count);
    if (extent.recv != 0 && call.recv == nullptr)
        return failure(ringInvalidArgument, "{}: the receive buffer is NULL but count is {}", call.name, call.count);
    if (extent.send == 0 || extent.recv == 0) return {};
    const auto send = reinterpret_cast<uintptr_t>(call.send), recv = reinterpret_cast<uintptr_t>(call.recv);
    const bool apart = send + extent.send * bytes <= recv || recv + extent.recv * bytes <= send;
    const bool in_place = extent.overlap_allowed && send + extent.send_at * bytes == recv + extent.recv_at * bytes;
    if (apart || in_place) return {};
    return failure(ringInvalidArgument, "{}: the buffers overlap (send {}, recv {}); {}{}", call.name, call.send, call.recv,
                   extent.overlap_allowed ? "in place means " : "this call allows ", extent.in_place);
}

// The arithmetic behind a ringRedOp_t; user-made ones carry their scalar.
Status resolve_op(const Call& call, const Communicator& comm, Operation& operation) {
    if (call.op < 0 && call.kind != Kind::all_reduce && call.kind != Kind::scatter_reduce && call.kind != Kind::reduce)
        return {};
    switch (call.op) {
        case ringSum:
            operation.print.op = Op::sum;
            return {};
        case ringProd:
            operation.print.op = Op::prod;
            return {};
        case ringMax:
            operation.print.op = Op::max;
            return {};
        case ringMin:
            operation.print.op = Op::min;
            return {};
        case ringAvg:
            operation.print.op = Op::avg;
            return {};
        default:
            break;
    }
    const auto made = comm.ops().find(call.op);
    if (!made)
        return failure(ringInvalidArgument, "{}: op {} is neither one of ringSum .. ringAvg nor made by this communicator",
                       call.name, call.op);
    if (made->type != call.type)
        return failure(ringInvalidArgument, "{}: op {} was made for {}, not for {}", call.name, call.op, type_name(made->type),
                       type_name(call.type));
    operation.print.op = Op::premul;
    operation.scalar = made->scalar;
    operation.scalar_bits = made->bits;
    return {};
}

}  // namespace

Result<Operation> check(const Call& call, const Communicator& comm) {
    const size_t element = type_size(call.type);
    if (element == 0)
        return failure(ringInvalidArgument, "{}: {} is not a data type; see ringDataType_t", call.name,
                       static_cast<int>(call.type));
    if (call.root < 0 || call.root >= comm.size())
        return failure(ringInvalidArgument, "{}: root {} is out of range; ranks are 0 to {}", call.name, call.root,
                       comm.size() - 1);
    const bool pair = call.kind == Kind::send || call.kind == Kind::recv;
    if (pair && (call.peer < 0 || call.peer >= comm.size()))
        return failure(ringInvalidArgument, "{}: peer {} is out of range; ranks are 0 to {}", call.name, call.peer,
                       comm.size() - 1);
    Operation operation;
    operation.print.kind = call.kind;
    operation.print.type = static_cast<uint8_t>(call.type);
    operation.print.count = call.count;
    operation.print.root = call.root;
    operation.peer = call.peer;
    RINGCCL_TRY(resolve_op(call, comm, operation));
    const Extent extent = extent_of(call, comm.rank(), comm.size());
    RINGCCL_TRY(check_buffers(call, extent, element));
    if (call.count != 0) {
        if (extent.send != 0) RINGCCL_TRY(comm.device().check_buffer(call.name, "send", call.send));
        if (extent.recv != 0) RINGCCL_TRY(comm.device().check_buffer(call.name, "receive", call.recv));
    }
    // A buffer that this rank does not use may hold anything; plans never name it.
    operation.send = extent.send != 0 ? call.send : nullptr;
    operation.recv = extent.recv != 0 ? call.recv : nullptr;
    return operation;
}

Status check_world(const char* caller, int rank, int size) {
    constexpr int kMost = 1 << 16;
    if (size < 1 || size > kMost)
        return failure(ringInvalidArgument, "{}: world size {} is out of range (1 to {})", caller, size, kMost);
    if (rank < 0 || rank >= size)
        return failure(ringInvalidArgument, "{}: rank {} is out of range; ranks of a world of {} are 0 to {}", caller, rank,
                       size, size - 1);
    return {};
}

namespace {

Status choose_device(const char* caller, int index, Settings& settings) {
    RINGCCL_ASSIGN(const CudaModule* cuda, cuda_module(settings.cuda_module));
    RINGCCL_ASSIGN(const int count, cuda->device_count());
    if (index < -1 || index >= count)
        return failure(ringInvalidArgument, "{}: config.deviceIndex {} is out of range; there are {} CUDA devices", caller,
                       index, count);
    if (index == -1) {
        RINGCCL_ASSIGN(index, cuda->current_device());
    }
    settings.cuda_device = index;
    return {};
}

}  // namespace

Result<Settings> settings_for(const char* caller, const ringConfig_t* config, const Settings* inherited) {
    Settings settings;
    if (inherited != nullptr) {
        settings = *inherited;
    } else {
        RINGCCL_ASSIGN(settings, settings_from_environment());
    }
    if (config == nullptr) return settings;
    // An older caller's struct is shorter: what it does not have stays at its initial value.
    ringConfig_t known = RINGCCL_CONFIG_INITIALIZER;
    if (config->size < offsetof(ringConfig_t, deviceIndex) || config->size > 4096)
        return failure(ringInvalidArgument, "{}: config.size is {}; start from RINGCCL_CONFIG_INITIALIZER", caller,
                       config->size);
    std::memcpy(&known, config, std::min(config->size, sizeof known));
    if (known.deviceKind == ringDeviceCuda)
        RINGCCL_TRY(choose_device(caller, known.deviceIndex, settings));
    else if (known.deviceKind != ringDeviceHost)
        return failure(ringInvalidArgument, "{}: config.deviceKind {} is not a device; see ringDeviceKind_t", caller,
                       known.deviceKind);
    const auto set = [&](const char* field, const char* knob_name, const std::string& value) -> Status {
        for (const Knob& knob : knobs()) {
            if (std::strcmp(knob.name, knob_name) != 0) continue;
            const Status done = set_knob(settings, knob, value);
            if (done.ok()) return done;
            return failure(ringInvalidArgument, "{}: config.{} follows the rules of a setting: {}", caller, field, done.text());
        }
        return failure(ringInternalError, "{}: there is no setting {}", caller, knob_name);
    };
    if (known.timeoutMs != -1) RINGCCL_TRY(set("timeoutMs", "RINGCCL_TIMEOUT_MS", std::to_string(known.timeoutMs)));
    if (known.initTimeoutMs != -1)
        RINGCCL_TRY(set("initTimeoutMs", "RINGCCL_INIT_TIMEOUT_MS", std::to_string(known.initTimeoutMs)));
    if (known.transport != nullptr) RINGCCL_TRY(set("transport", "RINGCCL_TRANSPORT", known.transport));
    if (known.algorithm != nullptr) RINGCCL_TRY(set("algorithm", "RINGCCL_ALGORITHM", known.algorithm));
    if (known.interface != nullptr) RINGCCL_TRY(set("interface", "RINGCCL_INTERFACE", known.interface));
    return settings;
}

}  // namespace ringccl
