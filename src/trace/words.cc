#include "trace/words.h"

namespace ringccl {

Kind called(const Operation& operation) {
    const Kind kind = operation.print.kind;
    return kind == Kind::send && operation.recv != nullptr ? Kind::recv : kind;
}

std::string result_name(ringResult_t result) {
    const std::string text = ringGetErrorString(result);  // "ringTimeout: nothing moved ..."
    return text.substr(0, text.find(':'));
}

}  // namespace ringccl
