// Speed of the CPU kernels. bytes_per_second counts what is read and written: (k + 1) elements for each result.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "kernels/cpu/kernels.h"

namespace {

using namespace ringccl;

struct Named {
    const char* name;
    ringDataType_t type;
    size_t bytes;
};
constexpr Named kTypes[] = {{"float32", ringFloat32, 4}, {"float16", ringFloat16, 2},       {"bfloat16", ringBfloat16, 2},
                            {"float64", ringFloat64, 8}, {"float8e4m3", ringFloat8e4m3, 1}, {"float8e5m2", ringFloat8e5m2, 1},
                            {"int8", ringInt8, 1},       {"int32", ringInt32, 4},           {"int64", ringInt64, 8}};

void reduce(benchmark::State& state, Named type, Op op, int k) {
    const auto count = static_cast<size_t>(state.range(0));
    std::vector<std::vector<uint8_t>> buffers(static_cast<size_t>(k) + 1, std::vector<uint8_t>(count * type.bytes));
    std::vector<const void*> sources;
    for (int j = 0; j < k; ++j) sources.push_back(buffers[static_cast<size_t>(j)].data());
    const ReduceKernel kernel = reduce_kernel(type.type, op);
    for (auto _ : state) {
        kernel(buffers.back().data(), sources.data(), k, count, Scale{.divisor = k});
        benchmark::ClobberMemory();
    }
    state.SetItemsProcessed(state.iterations() * state.range(0));
    state.SetBytesProcessed(state.iterations() * state.range(0) * (k + 1) * static_cast<int64_t>(type.bytes));
}

void copy(benchmark::State& state, bool streaming) {
    const auto bytes = static_cast<size_t>(state.range(0));
    std::vector<uint8_t> src(bytes, 1), dst(bytes);
    for (auto _ : state) {
        copy_bytes(dst.data(), src.data(), bytes, streaming);
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * state.range(0) * 2);
}

}  // namespace

int main(int argc, char** argv) {
    // A message of one line, one that stays in the second-level cache, one that stays in no cache.
    constexpr int64_t kCounts[] = {16, 16 << 10, 32 << 20};
    const std::pair<const char*, Op> ops[] = {{"sum", Op::sum}, {"max", Op::max}, {"avg", Op::avg}};
    for (const Named& type : kTypes) {
        for (const auto& [op_name, op] : ops) {
            for (int k : {2, 4, 8}) {
                const std::string name = std::string(type.name) + "/" + op_name + "/k=" + std::to_string(k);
                auto* bench = benchmark::RegisterBenchmark(name.c_str(), reduce, type, op, k);
                for (int64_t count : kCounts) {
                    if (count < 1 << 20 || k == 2) bench->Arg(count);
                }
            }
        }
    }
    benchmark::RegisterBenchmark("copy", copy, false)->Arg(64 << 10)->Arg(256 << 20);
    benchmark::RegisterBenchmark("copy/streaming", copy, true)->Arg(64 << 10)->Arg(256 << 20);

    benchmark::AddCustomContext("kernels", kernel_target());
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
