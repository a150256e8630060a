#include "base/operation.h"

namespace ringccl {

const char* kind_name(Kind kind) {
    switch (kind) {
        case Kind::all_reduce:
            return "allReduce";
        case Kind::scatter_reduce:
            return "scatterReduce";
        case Kind::all_gather:
            return "allGather";
        case Kind::broadcast:
            return "broadcast";
        case Kind::reduce:
            return "reduce";
        case Kind::gather:
            return "gather";
        case Kind::scatter:
            return "scatter";
        case Kind::all_to_all:
            return "allToAll";
        case Kind::barrier:
            return "barrier";
        case Kind::send:
            return "send";
        case Kind::recv:
            return "recv";
    }
    return "unknown kind";
}

const char* op_name(Op op) {
    switch (op) {
        case Op::none:
            return "none";
        case Op::sum:
            return "sum";
        case Op::prod:
            return "prod";
        case Op::max:
            return "max";
        case Op::min:
            return "min";
        case Op::avg:
            return "avg";
        case Op::premul:
            return "premulsum";
    }
    return "unknown op";
}

const char* type_name(ringDataType_t type) {
    switch (type) {
        case ringInt8:
            return "int8";
        case ringUint8:
            return "uint8";
        case ringInt32:
            return "int32";
        case ringUint32:
            return "uint32";
        case ringInt64:
            return "int64";
        case ringUint64:
            return "uint64";
        case ringFloat16:
            return "float16";
        case ringFloat32:
            return "float32";
        case ringFloat64:
            return "float64";
        case ringBfloat16:
            return "bfloat16";
        case ringFloat8e4m3:
            return "float8e4m3";
        case ringFloat8e5m2:
            return "float8e5m2";
    }
    return "unknown type";
}

size_t type_size(ringDataType_t type) {
    switch (type) {
        case ringInt8:
        case ringUint8:
        case ringFloat8e4m3:
        case ringFloat8e5m2:
            return 1;
        case ringFloat16:
        case ringBfloat16:
            return 2;
        case ringInt32:
        case ringUint32:
        case ringFloat32:
            return 4;
        case ringInt64:
        case ringUint64:
        case ringFloat64:
            return 8;
    }
    return 0;
}

namespace {

template <class Value>
Status differ(const char* field, int one, const Fingerprint& ones, const Value& first, int other, const Fingerprint& others,
              const Value& second) {
    return failure(ringMismatch,
                   "the ranks call different things: {} is {} on rank {} but {} on rank {} (rank {}: {}, rank {}: {})", field,
                   first, one, second, other, one, name_of(ones), other, name_of(others));
}

}  // namespace

std::string name_of(const Fingerprint& print) {
    if (print.kind == Kind::send) return fmt::format("send (message {} of its pair)", print.sequence);
    return fmt::format("{} (operation {})", kind_name(print.kind), print.sequence);
}

Status disagreement(int one, const Fingerprint& ones, int other, const Fingerprint& others) {
    if (one > other) return disagreement(other, others, one, ones);
    const auto about = [&](const char* field, const auto& first, const auto& second) {
        return differ(field, one, ones, first, other, others, second);
    };
    const auto name = [](const Fingerprint& print) { return type_name(static_cast<ringDataType_t>(print.type)); };
    if (ones.kind != others.kind) return about("the operation", kind_name(ones.kind), kind_name(others.kind));
    if (ones.sequence != others.sequence) return about("the number of calls made before", ones.sequence, others.sequence);
    if (ones.type != others.type) return about("the type", name(ones), name(others));
    if (ones.op != others.op) return about("the op", op_name(ones.op), op_name(others.op));
    if (ones.count != others.count) return about("the count", ones.count, others.count);
    if (ones.root != others.root) return about("the root", ones.root, others.root);
    return {};
}

}  // namespace ringccl
