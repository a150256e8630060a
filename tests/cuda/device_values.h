// Numbers in a rank's device memory, for tests that make their own calls.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "standin/twin.h"
#include "support/device_side.h"

#pragma weak standin_count

namespace ringccl::test {

// Whether the runtime is the stand-in, which can be asked what was called and be told to fail; else it is the real one.
inline bool on_standin() {
    return &standin_count != nullptr;
}

inline cudaStream_t stream_of(const Member& me) {
    return static_cast<cudaStream_t>(me.stream);
}

inline Verdict cuda_worked(cudaError_t error, const char* call) {
    return error == cudaSuccess ? good() : bad("{} gave {}", call, cudaGetErrorString(error));
}

class DeviceValues {
public:
    // Written in the order of the rank's stream; `number` tells this array from the rank's others.
    DeviceValues(const Member& me, int number, const std::vector<int32_t>& values) : me_(me), count_(values.size()) {
        data_ = reinterpret_cast<int32_t*>(DeviceSide::of_program()->memory(me, number, bytes(), 0));
        set(values);
    }

    int32_t* data() const { return data_; }
    size_t count() const { return count_; }
    size_t bytes() const { return count_ * sizeof(int32_t); }

    // `values` may go when this returns.
    void set(const std::vector<int32_t>& values) {
        cudaMemcpyAsync(data_, values.data(), bytes(), cudaMemcpyDefault, stream_of(me_));
    }
    // Waits for the rank's stream.
    Verdict are(const std::vector<int32_t>& expected) const {
        std::vector<int32_t> values(count_);
        if (Verdict v =
                cuda_worked(cudaMemcpyAsync(values.data(), data_, bytes(), cudaMemcpyDefault, stream_of(me_)), "a copy");
            !v)
            return v;
        if (Verdict v = await_side(me_); !v) return v;
        for (size_t i = 0; i < count_; ++i)
            if (values[i] != expected[i])
                return bad("rank {} of {}: element {} of {} is {}, should be {}", me_.rank, me_.size, i, count_, values[i],
                           expected[i]);
        return good();
    }

private:
    const Member& me_;
    size_t count_;
    int32_t* data_;
};

// What a rank brings, and what the sum over ranks 0 .. size - 1 must be.
inline std::vector<int32_t> numbers(int rank, size_t count, int round = 0) {
    std::vector<int32_t> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<int32_t>(i * 3 + static_cast<size_t>(rank * 1000 + round * 7));
    return values;
}
inline std::vector<int32_t> sum_of_numbers(int size, size_t count, int round = 0) {
    std::vector<int32_t> sum(count);
    for (int rank = 0; rank < size; ++rank)
        for (size_t i = 0; i < count; ++i) sum[i] += static_cast<int32_t>(i * 3 + static_cast<size_t>(rank * 1000 + round * 7));
    return sum;
}

// allReduce in the rank's stream.
inline Verdict reduce(const Member& me, const int32_t* send, int32_t* recv, size_t count, void* stream) {
    return worked(ringAllReduce(send, recv, count, ringInt32, ringSum, me.comm, stream), "ringAllReduce");
}

}  // namespace ringccl::test
