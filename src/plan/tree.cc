// Binomial tree: seen from the root, a rank's parent is its number without the lowest set bit. log2 N levels; a parent combines
// all its children in one pass. For broadcast and reduce of small messages over a network.
//
// No step needs `stage`: on the way up nothing is written outside the root, and what comes down overwrites only input that the
// parent has already made it from.
#include <algorithm>

#include "plan/pieces.h"
#include "plan/planners.h"

namespace ringccl {

std::vector<Step> tree_steps(const Shape& shape, const Tree& tree) {
    const Region input{Buffer::send, 0}, output{Buffer::recv, 0};
    const bool root = tree.parent < 0;
    const std::vector<int> parent = root ? std::vector<int>{} : std::vector<int>{tree.parent};
    const Step up{.sources = tree.children,
                  .sinks = parent,
                  .local = input,
                  .dest = root ? output : Region{},
                  .count = shape.count,
                  .reduce = !tree.children.empty(),
                  .finish = root};
    const Step down{
        .sources = parent, .sinks = tree.children, .local = root ? input : Region{}, .dest = output, .count = shape.count};
    if (shape.kind == Kind::reduce) return {up};
    if (shape.kind == Kind::broadcast) return {down};
    if (!root) return {up, down};
    Step turn = up;  // at the root the result of going up is what goes down
    turn.sinks = tree.children;
    return {turn};
}

Plan plan_tree(const Shape& shape, const World& world) {
    if (world.size == 1) return plan_alone(shape, world);
    const int root = shape.kind == Kind::all_reduce || shape.kind == Kind::barrier ? 0 : shape.root;
    const int number = (world.rank - root + world.size) % world.size;  // as seen from the root
    auto rank_of = [&](int n) { return (n + root) % world.size; };
    Tree tree;
    if (number > 0) tree.parent = rank_of(number & (number - 1));
    for (int bit = 1; !(number & bit) && number + bit < world.size; bit *= 2) tree.children.push_back(rank_of(number + bit));
    std::sort(tree.children.begin(), tree.children.end());

    Plan plan{.algorithm = "tree", .channels = {{.lane = 0, .steps = tree_steps(shape, tree)}}, .burst = 1};
    return shape.kind == Kind::barrier ? barrier_of(std::move(plan)) : plan;
}

}  // namespace ringccl
