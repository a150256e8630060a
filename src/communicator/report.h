// What ringccl-info asks of a communicator beyond the C API.
#pragma once

#include <string>
#include <vector>

#include "ringccl/ringccl.h"

namespace ringccl {

// One line per other rank: by which transport it is reached, in which way, and why not by a better one.
std::vector<std::string> link_report(ringComm_t comm);

}  // namespace ringccl
