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
