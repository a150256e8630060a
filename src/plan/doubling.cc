// Recursive doubling: in round k each rank exchanges all it has with the rank whose number differs in bit k, so after log2 N
// rounds all have all (Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", Int. J.
// High Perform. Comput. Appl. 19(1), 2005). The fewest steps over links that carry one message at a time; K bytes in each.
//
// If N is no power of two, the odd ones among the first 2 (N - P) ranks, P the largest power of two below N, hand their input
// to the even rank before them, sit out, and are given the result at the end.
//
// Partners compute identical bits: each holds the other's partial sum and its own, and operands are combined in rank order.
#include <bit>

#include "plan/pieces.h"
#include "plan/planners.h"

namespace ringccl {

Plan plan_doubling(const Shape& shape, const World& world) {
    if (world.size == 1) return plan_alone(shape, world);
    const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(world.size)));
    const int paired = 2 * (world.size - power);  // ranks below this one come in pairs
    const bool in_pair = world.rank < paired;
    const Region input{Buffer::send, 0}, result{Buffer::recv, 0};

    std::vector<Step> steps;
    if (in_pair && world.rank % 2 == 1) {
        // In place, the result overwrites the input only after the partner has made it from that input.
        steps.push_back({.sinks = {world.rank - 1}, .local = input, .count = shape.count});
        steps.push_back({.sources = {world.rank - 1}, .dest = result, .count = shape.count});
    } else {
        // The active ranks, in rank order, are numbered 0 .. power - 1.
        const int number = in_pair ? world.rank / 2 : world.rank - paired / 2;
        auto partner = [&](int bit) {
            const int other = number ^ bit;
            return other < paired / 2 ? 2 * other : other + paired / 2;
        };
        // Each step offers what the next round needs. It is a copy, because the next step adds to the original without knowing
        // whether the partner has come to read it; only input that is never written, and the result, are shown as they are.
        Step first{.sinks = {partner(1)}, .local = input, .count = shape.count, .stage = shape.in_place};
        if (in_pair) first.sources = {world.rank + 1}, first.dest = result, first.reduce = first.stage = true;
        steps.push_back(first);
        for (int bit = 1; bit < power; bit *= 2) {
            const bool last = 2 * bit == power;
            Step step{.sources = {partner(bit)}, .local = result, .dest = result, .count = shape.count, .reduce = true};
            if (bit == 1 && !in_pair) step.local = input;
            if (!last) step.sinks = {partner(2 * bit)}, step.stage = true;
            if (last && in_pair) step.sinks = {world.rank + 1};
            step.finish = last;
            steps.push_back(step);
        }
    }
    Plan plan{.algorithm = "doubling", .channels = {{.lane = 0, .steps = std::move(steps)}}, .burst = 1};
    return shape.kind == Kind::barrier ? barrier_of(std::move(plan)) : plan;
}

}  // namespace ringccl
