// The module's kernels once more, for the stand-in (standin/twin.h).
#include "standin/emulation.h"
//
#include "standin/thunk.h"
//
#include <vector>

#include "kernels/cuda/table.cuh"
#include "kernels/cuda/wait.cuh"

namespace ringccl::cuda {

void pause() {
    standin_pause();
}

namespace {

std::vector<StandinKernel> all_kernels() {
    std::vector<StandinKernel> kernels = {standin::entry(&wait_kernel)};
    for (int type = ringInt8; type <= ringFloat8e5m2; ++type) {
        for (Op op : {Op::sum, Op::prod, Op::max, Op::min, Op::avg, Op::premul}) {
            const void* code = reduce_function(static_cast<ringDataType_t>(type), op);
            kernels.push_back(standin::entry(reinterpret_cast<void (*)(ReduceArguments)>(const_cast<void*>(code))));
        }
    }
    return kernels;
}

}  // namespace
}  // namespace ringccl::cuda

extern "C" const StandinKernel* standin_kernels(size_t* count) {
    static const std::vector<StandinKernel> kernels = ringccl::cuda::all_kernels();
    *count = kernels.size();
    return kernels.data();
}
