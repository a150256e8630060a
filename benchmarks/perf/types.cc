#include "perf/types.h"

#include <algorithm>
#include <array>

namespace ringccl::perf {
namespace {

constexpr auto kTypes = std::to_array<Type>({
    {ringInt8, "int8", "int8", 1, Arithmetic::signed_integer},
    {ringUint8, "uint8", "uint8", 1, Arithmetic::unsigned_integer},
    {ringInt32, "int32", "int32", 4, Arithmetic::signed_integer},
    {ringUint32, "uint32", "uint32", 4, Arithmetic::unsigned_integer},
    {ringInt64, "int64", "int64", 8, Arithmetic::signed_integer},
    {ringUint64, "uint64", "uint64", 8, Arithmetic::unsigned_integer},
    {ringFloat16, "half", "float16", 2, Arithmetic::floating, 10, 5},
    {ringFloat32, "float", "float32", 4, Arithmetic::floating, 23, 8},
    {ringFloat64, "double", "float64", 8, Arithmetic::floating, 52, 11},
    {ringBfloat16, "bfloat16", "bf16", 2, Arithmetic::floating, 7, 8},
    {ringFloat8e4m3, "f8e4m3", "float8e4m3", 1, Arithmetic::floating, 3, 4},
    {ringFloat8e5m2, "f8e5m2", "float8e5m2", 1, Arithmetic::floating, 2, 5},
});

constexpr auto kOperations = std::to_array<Operation>({
    {Reduction::sum, "sum", ringSum},
    {Reduction::prod, "prod", ringProd},
    {Reduction::max, "max", ringMax},
    {Reduction::min, "min", ringMin},
    {Reduction::avg, "avg", ringAvg},
    {Reduction::mulsum, "mulsum", ringNumOps},
});

}  // namespace

const Operation kNoOperation{Reduction::none, "none", ringSum};

std::span<const Type> types() {
    return kTypes;
}
std::span<const Operation> operations() {
    return kOperations;
}

const Type* find_type(std::string_view name) {
    auto found = std::ranges::find_if(kTypes, [&](const Type& type) { return type.name == name || type.alias == name; });
    return found == kTypes.end() ? nullptr : &*found;
}

const Operation* find_operation(std::string_view name) {
    auto found = std::ranges::find_if(kOperations, [&](const Operation& operation) { return operation.name == name; });
    return found == kOperations.end() ? nullptr : &*found;
}

}  // namespace ringccl::perf
