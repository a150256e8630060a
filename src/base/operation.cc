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
    }
    return "unknown type";
}

size_t type_size(ringDataType_t type) {
    switch (type) {
        case ringInt8:
        case ringUint8:
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

}  // namespace ringccl
