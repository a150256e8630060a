// The types of elements. Apart from what is done to them, as op.h is.
#pragma once

#include <cstddef>

#include "ringccl/ringccl.h"

namespace ringccl {

const char* type_name(ringDataType_t type);  // "float32"
size_t type_size(ringDataType_t type);       // bytes; 0 if unknown

}  // namespace ringccl
