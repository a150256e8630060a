// One binary per collective is made of this: RINGCCL_PERF_PROGRAM is its name.
#include "perf/options.h"
#include "perf/session.h"

int main(int argc, char** argv) {
    using namespace ringccl::perf;
    const Collective& collective = *find_collective(RINGCCL_PERF_PROGRAM);
    Options options;
    if (auto code = parse_options(argc, argv, collective, options)) return *code;
    return options.print_plan ? print_plans(collective, options) : run_session(collective, options);
}
