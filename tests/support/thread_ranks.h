// Worlds whose ranks are threads of this process.
#pragma once

#include "support/member.h"

namespace ringccl::test {

// Runs body once per rank, each in a thread of its own with its own communicator, made by ringCommInitRankConfig and destroyed
// afterwards. A rank whose verdict is bad aborts its communicator, so that the others do not wait for it.
void run_ranks(const WorldOptions& options, const Body& body);

// Runs `body(i)` in `count` threads and reports bad verdicts. No communicator is made.
void run_threads(int count, const std::function<Verdict(int)>& body);

}  // namespace ringccl::test
