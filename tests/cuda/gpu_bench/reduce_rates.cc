#include <fmt/format.h>

#include "base/type.h"
#include "kernels/cuda/launch.h"
#include "parts.h"

namespace ringccl::gpu_bench {
namespace {

constexpr int kMostOperands = 8;
constexpr int kLibrarysBlocks = 2;  // per multiprocessor (device/cuda/cuda_device.cc)

cudaStream_t make_stream() {
    cudaStream_t stream = nullptr;
    GPU_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

int multiprocessors() {
    int count = 0;
    GPU_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
    return count;
}

// All operands of the largest reduction. Smaller ones go from place to place in it, so that no cache holds what they read.
struct Pool {
    size_t bytes;
    std::byte* memory;
    explicit Pool(size_t bytes) : bytes(bytes), memory(allocate(bytes)) {}
    ~Pool() { cudaFree(memory); }
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    std::byte* piece(int number, size_t size) const { return memory + static_cast<size_t>(number) % (bytes / size) * size; }
};

class ReduceRates {
public:
    explicit ReduceRates(const Effort& effort) : effort_(effort), pool_((kMostOperands + 1) * effort.large) {}

    // Bytes read and written a second.
    double reduction(ringDataType_t type, size_t bytes, int k, int blocks_per_multiprocessor) {
        const double seconds = median_seconds(stream_, effort_, [&](int number) {
            std::byte* at = pool_.piece(number, (k + 1) * bytes);
            const void* sources[kMostOperands];
            for (int j = 0; j < k; ++j) sources[j] = at + (j + 1) * bytes;
            GPU_CHECK(cuda::launch_reduce(type, Op::sum, at, sources, k, bytes / type_size(type), {},
                                          blocks_per_multiprocessor * multiprocessors_, stream_));
        });
        return static_cast<double>((k + 1) * bytes) / seconds;
    }

    double copy(size_t bytes) {
        const double seconds = median_seconds(stream_, effort_, [&](int number) {
            std::byte* at = pool_.piece(number, bytes);
            GPU_CHECK(cudaMemcpyAsync(at, at + bytes / 2, bytes / 2, cudaMemcpyDeviceToDevice, stream_));
        });
        return static_cast<double>(bytes) / seconds;
    }

private:
    const Effort& effort_;
    Pool pool_;
    cudaStream_t stream_ = make_stream();
    int multiprocessors_ = multiprocessors();
};

struct Column {
    size_t bytes;
    int k;
    double copy;
};

}  // namespace

double copy_rate(const Effort& effort, size_t bytes) {
    Pool pool(bytes);
    cudaStream_t stream = make_stream();
    const double seconds = median_seconds(stream, effort, [&](int) {
        GPU_CHECK(cudaMemcpyAsync(pool.memory, pool.memory + bytes / 2, bytes / 2, cudaMemcpyDeviceToDevice, stream));
    });
    return static_cast<double>(bytes) / seconds;
}

void print_reduce_rates(const Effort& effort) {
    ReduceRates rates(effort);
    std::vector<Column> columns;
    fmt::print(
        "\n(a) Reductions (sum of k operands): GB/s, bytes read + written, and the share of a device-to-device copy of as many "
        "bytes\n{:12}",
        "");
    for (int k : {2, kMostOperands}) {
        for (size_t bytes : {effort.small, effort.large}) {
            columns.push_back({bytes, k, rates.copy((k + 1) * bytes)});
            fmt::print(" {:>15}", fmt::format("k={}, {} KiB", k, bytes >> 10));
        }
    }
    fmt::print("\n{:12}", "copy");
    for (const Column& column : columns) fmt::print(" {:>8.1f}       ", column.copy / 1e9);
    for (int number = ringInt8; number <= ringFloat8e5m2; ++number) {
        const auto type = static_cast<ringDataType_t>(number);
        fmt::print("\n{:12}", type_name(type));
        for (const Column& column : columns) {
            const double rate = rates.reduction(type, column.bytes, column.k, kLibrarysBlocks);
            fmt::print(" {:>8.1f} {:>4.0f} %", rate / 1e9, 100 * rate / column.copy);
        }
    }
    fmt::print("\n\nfloat32 by blocks per multiprocessor (the library takes {})", kLibrarysBlocks);
    for (int blocks : {1, 2, 4, 8}) {
        fmt::print("\n{:12}", blocks);
        for (const Column& column : columns) {
            const double rate = rates.reduction(ringFloat32, column.bytes, column.k, blocks);
            fmt::print(" {:>8.1f} {:>4.0f} %", rate / 1e9, 100 * rate / column.copy);
        }
    }
    fmt::print("\n");
}

}  // namespace ringccl::gpu_bench
