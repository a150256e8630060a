// Worlds whose ranks are processes. They are forked from the test before it has made any call of the library (a communicator
// does not survive a fork), so a test of this kind uses the library in the children only.
#pragma once

#include <functional>

#include "support/member.h"

namespace ringccl::test {

// Forks `count` processes, runs child(i) in each and gathers bad verdicts, deaths, and children that are not done within
// `seconds`; those are killed. Children die with the test.
Verdict judge_processes(int count, const std::function<Verdict(int)>& child, int seconds = 120);

// The same, reported to GoogleTest.
void fork_processes(int count, const std::function<Verdict(int)>& child, int seconds = 120);

// With a communicator per process, made from an id that rank 0 makes and hands to the others through pipes.
// `prepare` runs in each child before its first call of the library: for its environment or its network namespace.
void run_processes(const WorldOptions& options, const Body& body, const std::function<Verdict(int)>& prepare = {});

}  // namespace ringccl::test
