#include "perf/place.h"

#include "perf/cuda_place.h"
#include "perf/host_place.h"

namespace ringccl::perf {

std::unique_ptr<Place> make_place(const Options& options, int rank) {
    if (options.cuda) return std::make_unique<CudaPlace>(rank, options.device_index);
    return std::make_unique<HostPlace>(options.ring_memory, options.stream);
}

}  // namespace ringccl::perf
