// The command line of the tools. Flags that mean what they mean in nccl-tests have the same letters.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "perf/collective.h"
#include "perf/types.h"

namespace ringccl::perf {

enum class Average { rank0, mean, least, most };  // of the ranks' times

struct Options {
    size_t min_bytes = 8;
    size_t max_bytes = size_t{64} << 20;
    size_t step_bytes = 0;  // 0: multiply by the factor instead
    int step_factor = 4;
    int iterations = 20;
    int warmup = 5;
    int aggregate = 1;  // calls in one group
    int threads = 1;    // ranks in each process
    int ranks = 0;      // to be started here; 0: a launcher has started them
    std::vector<Type> types;
    std::vector<Operation> operations;
    int root = 0;  // -1: each in turn
    bool check = true;
    Average average = Average::mean;
    std::string transport;  // "": as the environment says
    std::string algorithm;
    std::string json;  // file name, or ""
    bool latency = false;
    bool stream = false;
    bool ring_memory = false;
    bool cuda = false;      // buffers on CUDA devices
    int device_index = -1;  // which; -1: rank r on device r modulo their number
    bool print_plan = false;

    std::vector<size_t> sizes() const;  // bytes, ascending
};

// Fills in `options`, or returns the exit code with which the program should end now (help was asked for, or an error named).
std::optional<int> parse_options(int argc, char** argv, const Collective& collective, Options& options);

}  // namespace ringccl::perf
