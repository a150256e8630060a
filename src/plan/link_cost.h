// What a link costs, in microseconds: Hockney's alpha and beta, refined. Plans are ranked by it (plan/choose.cc).
#pragma once

#include <cstddef>

namespace ringccl {

struct LinkCost {
    double alpha_us = 1.0;     // until a small message is there
    double show_us = 0;        // added if it has more than `inline_bytes`
    double message_us = 0.25;  // what CPUs do for each further message, at both ends together
    double send_us_per_byte = 0, recv_us_per_byte = 1e-4;
    size_t inline_bytes = 0;
    size_t slice_bytes = 128 << 10;  // the slice at which large messages were fastest
};

}  // namespace ringccl
