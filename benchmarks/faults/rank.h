// The life of one rank, in a process of its own.
#pragma once

#include "faults/board.h"
#include "faults/fault.h"

namespace ringccl::faults {

struct Place {
    int rank, size, victim;
    const char* transport;
};

// Joins, works until the fault has ended the work, destroys its communicator, and leaves all it saw on its seat of the board.
// Call it in a process that has not used the library before.
void live(Board& board, const Fault& fault, const Place& place);

}  // namespace ringccl::faults
