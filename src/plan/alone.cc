// One rank alone: what a collective leaves to do is to bring the input to its place.
#include "plan/pieces.h"
#include "plan/planners.h"

namespace ringccl {

Plan plan_alone(const Shape& shape, const World&) {
    Plan plan{.algorithm = "alone", .burst = 1};
    if (shape.kind == Kind::barrier || shape.kind == Kind::send || shape.kind == Kind::recv) return plan;
    // A sum of one input is a copy, but these two operations change even a single input, in place too.
    const bool computes = shape.op == Op::avg || shape.op == Op::premul;
    plan.channels.push_back({.lane = 0,
                             .steps = {{.local = {Buffer::send, 0},
                                        .dest = {Buffer::recv, 0},
                                        .count = shape.count,
                                        .reduce = computes,
                                        .finish = computes}}});
    return plan;
}

}  // namespace ringccl
