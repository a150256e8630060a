// What is sent and what must come back, to the bit.
//
// Each element's index is hashed to one of 256 rows; a rank has one value per row, so input and result of any element cost one
// look-up however many ranks there are, and a chunk that lands in the wrong place shows. The values are such that every
// partial result is exact in the element type, in whatever order ranks are combined (integers wrap, so for them anything goes).
#pragma once

#include <array>
#include <cstdint>

#include "perf/types.h"

namespace ringccl::perf {

constexpr int kRows = 256;
using Rows = std::array<uint64_t, kRows>;  // elements as bit patterns, in the low bytes

class Values {
public:
    Values(const Type& type, Reduction reduction, int world) : type_(type), reduction_(reduction), world_(world) {}

    Rows input(int rank) const;
    Rows result() const;  // of the reduction over all ranks

    // What mulsum multiplies a rank's input by, as an element.
    uint64_t scalar(int rank) const;

private:
    __int128 integer(int rank, int row) const;
    double real(int rank, int row) const;
    uint64_t integer_result(int row) const;
    uint64_t real_result(int row) const;
    int multiplier(int rank) const;
    uint64_t mask() const { return type_.size == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * type_.size)) - 1; }

    Type type_;
    Reduction reduction_;
    int world_;
};

// Elements first .. first + count - 1 of the sequence that `rows` stands for, written to `at` in elements of `size` bytes.
void fill(const Rows& rows, size_t size, uint64_t first, size_t count, void* at);

// How many of the elements at `at` are not that; `where` and `found`, if any is wrong, get the first one's place and bits.
size_t count_wrong(const Rows& rows, size_t size, uint64_t first, size_t count, const void* at, size_t* where, uint64_t* found);

int row_of(uint64_t index);

// The number nearest to `value` (ties to even) as a float of that shape; for values that do not overflow it.
uint64_t encode_float(double value, int mantissa_bits, int exponent_bits);

}  // namespace ringccl::perf
