// --print-plan: the one part of the tools that looks inside the library.
#include <fmt/format.h>

#include <cstdio>

#include "base/cpus.h"
#include "base/knobs.h"
#include "perf/session.h"
#include "plan/planners.h"

namespace ringccl::perf {
namespace {

Kind kind_of(const Collective& collective) {
    for (Kind kind : {Kind::all_reduce, Kind::scatter_reduce, Kind::all_gather, Kind::broadcast, Kind::reduce, Kind::gather,
                      Kind::scatter, Kind::all_to_all}) {
        if (kind_name(kind) == std::string_view(collective.name)) return kind;
    }
    return Kind::send;
}

Op op_of(const Operation& operation) {
    switch (operation.reduction) {
        case Reduction::sum:
            return Op::sum;
        case Reduction::prod:
            return Op::prod;
        case Reduction::max:
            return Op::max;
        case Reduction::min:
            return Op::min;
        case Reduction::avg:
            return Op::avg;
        case Reduction::mulsum:
            return Op::premul;
        default:
            return Op::none;
    }
}

}  // namespace

int print_plans(const Collective& collective, const Options& options) {
    auto settings = settings_from_environment();
    if (!settings.ok()) {
        fmt::print(stderr, "{}\n", settings.status().text());
        return 1;
    }
    Shape shape;
    shape.kind = kind_of(collective);
    if (shape.kind == Kind::send) {
        fmt::print(stderr, "{} has no plan worth printing: every rank sends to its right neighbour\n", collective.name);
        return 1;
    }
    World world;
    world.size = options.ranks ? options.ranks : 2;
    const std::string& transport = options.transport.empty() ? settings.value().transport : options.transport;
    const std::string& algorithm = options.algorithm.empty() ? settings.value().algorithm : options.algorithm;
    world.visible = transport == "auto" || transport.find("p2p") != std::string::npos;
    shape.type = options.types.front().value;
    shape.op = op_of(options.operations.front());
    shape.count = collective.count_for(options.min_bytes, options.types.front().size, world.size);
    shape.root = std::max(0, options.root);
    CostModel model;
    model.cpus = usable_cpus();
    model.remote = model.local;
    std::vector<Plan> plans;
    for (world.rank = 0; world.rank < world.size; ++world.rank) {
        plans.push_back(choose_plan(shape, world, model, algorithm, static_cast<int>(settings.value().channels)));
    }
    fmt::print("{}", print_plan(shape, plans));
    return 0;
}

}  // namespace ringccl::perf
