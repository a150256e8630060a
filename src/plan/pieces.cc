#include "plan/pieces.h"

#include <algorithm>
#include <numeric>

namespace ringccl {

Range part_of(Range whole, int parts, int index, ringDataType_t type) {
    const size_t n = static_cast<size_t>(parts);
    const size_t line = 64 / type_size(type);
    const bool large = whole.count / n >= 8 * line;
    auto cut = [&](size_t i) {
        const size_t exact = whole.count / n * i + whole.count % n * i / n;  // = count * i / n, but cannot overflow
        return large ? std::min(whole.count, (exact + line - 1) / line * line) : exact;
    };
    const size_t begin = cut(static_cast<size_t>(index)), end = cut(static_cast<size_t>(index) + 1);
    return {whole.offset + begin, end - begin};
}

std::vector<int> Group::others() const {
    std::vector<int> ranks;
    for (int i = 1; i < size(); ++i) ranks.push_back(member(me + i));
    std::sort(ranks.begin(), ranks.end());
    return ranks;
}

Group rank_group(const World& world) {
    Group group{std::vector<int>(static_cast<size_t>(world.size)), world.rank};
    std::iota(group.members.begin(), group.members.end(), 0);
    return group;
}

Group ring_group(const World& world) {
    if (world.ring.empty()) return rank_group(world);
    const auto me = std::find(world.ring.begin(), world.ring.end(), world.rank) - world.ring.begin();
    return {world.ring, static_cast<int>(me)};
}

std::vector<Chunk> chunks_of(const Shape& shape, const Group& group, Range range) {
    std::vector<Chunk> chunks;
    for (int i = 0; i < group.size(); ++i) {
        const size_t block = static_cast<size_t>(group.member(i)) * shape.count + range.offset;
        if (shape.kind == Kind::scatter_reduce) {
            chunks.push_back({range.count, {Buffer::send, block}, {Buffer::recv, range.offset}});
        } else if (shape.kind == Kind::all_gather) {
            chunks.push_back({range.count, {Buffer::send, range.offset}, {Buffer::recv, block}});
        } else {
            const Range part = part_of(range, group.size(), i, shape.type);
            chunks.push_back({part.count, {Buffer::send, part.offset}, {Buffer::recv, part.offset}});
        }
    }
    return chunks;
}

Plan barrier_of(Plan plan) {
    for (Channel& channel : plan.channels) {
        for (Step& step : channel.steps) {
            step.local = step.dest = {};
            step.reduce = step.finish = step.stage = false;
        }
    }
    return plan;
}

bool needs_all_inputs(const Shape& shape) {
    const bool is_integer = shape.type <= ringUint64;  // their numbers come first, the floats' after them
    return shape.op == Op::avg && is_integer;
}

}  // namespace ringccl
