// A whole run of a tool: makes the communicators, goes through the rows, reports.
#pragma once

#include "perf/collective.h"
#include "perf/options.h"

namespace ringccl::perf {

// Runs the ranks of `options` and returns the program's exit code: 0 if everything went well and every result was right.
int run_session(const Collective& collective, const Options& options);

// Prints, for the first row, who sends what to whom.
int print_plans(const Collective& collective, const Options& options);

}  // namespace ringccl::perf
