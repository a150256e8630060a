// The tables of gpu_bench.
#pragma once

#include "measure.h"

namespace ringccl::gpu_bench {

// Bytes read and written a second by a device-to-device cudaMemcpyAsync that reads and writes `bytes` in sum.
double copy_rate(const Effort& effort, size_t bytes);

void print_reduce_rates(const Effort& effort);
// `copy_rate`: bytes read and written a second.
void print_allreduce_times(const Effort& effort, double copy_rate);
void print_overlap(const Effort& effort);

}  // namespace ringccl::gpu_bench
