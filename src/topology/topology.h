// Who is where, and by which transport each pair of ranks speaks.
#pragma once

#include <string>
#include <vector>

#include "plan/planners.h"
#include "transports/transport.h"

namespace ringccl {

// The world as planners see it: hosts numbered by first appearance, the ring going through each host's ranks in turn.
World make_world(int rank, const std::vector<std::string>& host_ids);

// How many ranks share this rank's host.
int local_ranks(const World& world);

// reached[t][a][b]: rank a reached rank b by transport t.
using Reached = std::vector<std::vector<std::vector<bool>>>;

// Which transport serves the pair (rank, r): the first that both ends have reached each other by. -1: none.
std::vector<int> choose_transports(int rank, const Reached& reached);

}  // namespace ringccl
