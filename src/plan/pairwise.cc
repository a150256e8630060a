// Messages straight from sender to receiver, all at the same time: gather, scatter, allToAll, send and recv. Each message is a
// channel of its own, so a slow peer holds up nobody else.
#include <algorithm>

#include "plan/pieces.h"
#include "plan/planners.h"

namespace ringccl {
namespace {

class Messages {
public:
    Messages(Plan& plan, size_t count, int lane) : plan_(plan), count_(count), lane_(lane) {}

    void send(int to, size_t offset, int chunk) {
        add({.sinks = {to}, .local = {Buffer::send, offset}, .count = count_, .chunk = chunk});
    }
    void take(int from, size_t offset, int chunk) {
        add({.sources = {from}, .dest = {Buffer::recv, offset}, .count = count_, .chunk = chunk});
    }
    void keep(size_t from, size_t to, int chunk) {
        add({.local = {Buffer::send, from}, .dest = {Buffer::recv, to}, .count = count_, .chunk = chunk});
    }

private:
    void add(Step step) { plan_.channels.push_back({.lane = lane_, .steps = {std::move(step)}}); }

    Plan& plan_;
    size_t count_;
    int lane_;
};

}  // namespace

Plan plan_pairwise(const Shape& shape, const World& world, int peer) {
    if (world.size == 1) return plan_alone(shape, world);
    Plan plan{.algorithm = "pairwise", .burst = 1};
    const bool point_to_point = shape.kind == Kind::send || shape.kind == Kind::recv;
    Messages messages(plan, shape.count, point_to_point ? kPeerLane : 0);
    const int me = world.rank;
    auto block = [&](int rank) { return static_cast<size_t>(rank) * shape.count; };

    // A message to oneself needs no plan: whoever pairs the two calls copies.
    if (point_to_point && peer == me) return plan;
    switch (shape.kind) {
        case Kind::send:
            messages.send(peer, 0, -1);
            break;
        case Kind::recv:
            messages.take(peer, 0, -1);
            break;
        case Kind::gather:
            if (me != shape.root) messages.send(shape.root, 0, me);
            if (me == shape.root) messages.keep(0, block(me), me);
            for (int i = 1; i < world.size && me == shape.root; ++i) {
                const int rank = (me + i) % world.size;
                messages.take(rank, block(rank), rank);
            }
            break;
        case Kind::scatter:
            if (me != shape.root) messages.take(shape.root, 0, me);
            for (int i = 1; i < world.size && me == shape.root; ++i) {
                const int rank = (me + i) % world.size;
                messages.send(rank, block(rank), rank);
            }
            if (me == shape.root) messages.keep(block(me), 0, me);
            plan.burst = world.size - 1;
            break;
        default:  // allToAll. Everybody starts with another peer, so that no one is asked by all at once.
            for (int i = 1; i < world.size; ++i) {
                const int to = (me + i) % world.size, from = (me - i + world.size) % world.size;
                messages.send(to, block(to), to);
                messages.take(from, block(from), me);
            }
            messages.keep(block(me), block(me), me);
            plan.burst = world.size - 1;
    }
    return plan;
}

}  // namespace ringccl
