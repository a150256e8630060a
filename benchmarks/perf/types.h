// The element types and operations that the tools know, under the names that nccl-tests gives them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "ringccl/ringccl.h"

namespace ringccl::perf {

enum class Arithmetic { signed_integer, unsigned_integer, floating };

struct Type {
    ringDataType_t value;
    const char* name;
    const char* alias;  // the other common name, or the same again
    size_t size;        // bytes
    Arithmetic arithmetic;
    int mantissa_bits = 0;  // of a float, without the hidden one
    int exponent_bits = 0;
};

enum class Reduction { none, sum, prod, max, min, avg, mulsum };

struct Operation {
    Reduction reduction;
    const char* name;
    ringRedOp_t value;  // of mulsum: made anew for each communicator
};

std::span<const Type> types();
std::span<const Operation> operations();  // without none
extern const Operation kNoOperation;

// nullptr: no such name.
const Type* find_type(std::string_view name);
const Operation* find_operation(std::string_view name);

}  // namespace ringccl::perf
