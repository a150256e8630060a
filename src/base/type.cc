#include "base/type.h"

namespace ringccl {

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

}  // namespace ringccl
