// clang-format off: the order matters
#include "../emulation.h"
#include "../thunk.h"
#include "kernels.cuh"
// clang-format on

STANDIN_KERNELS(STANDIN_KERNEL(add), STANDIN_KERNEL(scale<float>), STANDIN_KERNEL(scale<int>), STANDIN_KERNEL(await))
