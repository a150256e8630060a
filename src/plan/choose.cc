// Which plan is fastest. Hockney's model: a step costs alpha, a byte costs beta; the terms of the classic algorithms are those
// of Thakur, Rabenseifner and Gropp (Int. J. High Perform. Comput. Appl. 19(1), 2005). To that we add what a CPU does for each
// further message of a step (the overhead o of LogP: Culler et al., PPoPP 1993), that the ranks of a host share its network,
// and that ranks which share a CPU wait for each other's work and are switched to once per dependent step. A model is for
// ranking, not for prediction. Its constants are a table (cost() of each transport), not measured at init: a plan that
// changes from run to run changes the order of sums, and with it the last bits of every result.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

#include "plan/pieces.h"
#include "plan/planners.h"

namespace ringccl {
namespace {

constexpr double kSwitchUs = 1.0;          // to let another rank of the same CPU go on
constexpr double kReadUsPerByte = 2.5e-5;  // of a rank's own operands
constexpr double kPipeline = 64 << 10;     // bytes that fill one hop of a chain
constexpr size_t kManyChannels = 8 << 20;  // bytes from which remote rings use more than one lane

// The world as the formulas see it. All times in microseconds, all sizes in bytes.
struct Terms {
    double n, hosts, per_host;  // ranks, hosts, ranks on the fullest host
    double bytes;               // K: of the whole vector
    double load;                // ranks per CPU, at least 1
    LinkCost near, link;        // within the host; between any two ranks
    double far_byte;            // beta between hosts
    bool visible;

    double log2_n() const { return std::ceil(std::log2(n)); }
    double log2_hosts() const { return std::ceil(std::log2(hosts)); }
    double others() const { return n - 1; }
    double strangers() const { return n - per_host; }  // ranks on other hosts

    // Until the ranks that share this one's CPU have had their turns.
    double turn() const { return kSwitchUs * (load - 1); }
    // A step in which the busiest rank has messages of `each` bytes with `most` others, and the average rank with `mean`. While
    // every rank has a CPU the busiest one counts, else all that the CPU does.
    double messages_over(const LinkCost& over, double each, double most, double mean) const {
        return over.alpha_us + (fits_inside(each, over) ? 0 : over.show_us) +
               over.message_us * (load > 1 ? load * mean : most - 1);
    }
    double messages(double each, double most, double mean) const { return messages_over(link, each, most, mean); }
    double step(double each, double peers) const { return turn() + messages(each, peers, peers); }
    static bool fits_inside(double bytes, const LinkCost& over) { return bytes <= double(over.inline_bytes); }

    double sending(double bytes) const { return bytes * near.send_us_per_byte; }
    double receiving(double bytes, double own) const { return bytes * near.recv_us_per_byte + own * kReadUsPerByte; }
    // All ranks at once offer `out` bytes (to however many others, if they are visible), take `in` from others and read `own`
    // of their own, and `far` bytes go through a host's network.
    double moving(double out, double in, double own, double far) const {
        return std::max(load * (sending(out) + receiving(in, own)), far * far_byte);
    }
    // What counts of a step in which the busiest rank does 1 and the average rank `mean`.
    double share(double mean) const { return std::max(1.0, load * mean); }
    // The same where some ranks send and then others receive.
    double handing(double sends, double receives, double far) const { return std::max(sends + receives, far * far_byte); }
    // How often a rank must offer what all others get.
    double copies() const { return visible ? 1 : others(); }
};

// Ranks on each host.
std::vector<int> crews(const World& world) {
    if (world.host.empty()) return {world.size};
    std::vector<int> count(static_cast<size_t>(*std::max_element(world.host.begin(), world.host.end())) + 1);
    for (int host : world.host) ++count[static_cast<size_t>(host)];
    return count;
}

Terms terms_of(const Shape& shape, const World& world, const CostModel& model) {
    const std::vector<int> crew = crews(world);
    const int per_host = *std::max_element(crew.begin(), crew.end());
    const bool far = crew.size() > 1;
    const bool blocks = shape.kind == Kind::scatter_reduce || shape.kind == Kind::all_gather;
    Terms t;
    t.n = world.size, t.hosts = double(crew.size()), t.per_host = per_host;
    t.bytes = double(shape.count) * double(type_size(shape.type)) * (blocks ? t.n : 1);
    t.load = std::max(1.0, std::ceil(double(per_host) / std::max(1, model.cpus)));
    t.near = model.local;
    t.link = far ? model.remote : model.local;
    t.far_byte = far ? model.remote.recv_us_per_byte : 0;
    t.visible = world.visible;
    return t;
}

// N - 1 steps of K/N bytes; reducing, a rank reads its own operand beside them. A host's ranks are neighbours in the ring, so a
// host sends one chunk a step over its network.
double ring_half(const Terms& t, bool reduces) {
    const double bytes = t.others() / t.n * t.bytes;
    return t.others() * t.step(t.bytes / t.n, 1) + t.moving(bytes, bytes, reduces ? bytes : 0, bytes);
}

double ring_cost(Kind kind, const Terms& t) {
    if (kind == Kind::all_reduce) return ring_half(t, true) + ring_half(t, false);
    if (kind == Kind::scatter_reduce || kind == Kind::all_gather) return ring_half(t, kind == Kind::scatter_reduce);
    // A chain: each hop begins when the first slices are there.
    const auto hop = [&](double bytes) { return t.moving(bytes, bytes, kind == Kind::reduce ? bytes : 0, bytes); };
    const double fill = std::min(t.bytes, kPipeline);
    return t.others() * (t.step(fill, 1) + hop(fill)) + hop(t.bytes);
}

// Everybody reads everybody: N vectors a rank, of which those from other hosts come over one network for all its ranks. That in
// place the input is copied first may not count: some ranks may call in place and others not, and all must choose alike.
double oneshot_cost(Kind, const Terms& t) {
    return t.step(t.bytes, t.others()) +
           t.moving(t.copies() * t.bytes, t.others() * t.bytes, t.bytes, t.per_host * t.strangers() * t.bytes);
}

// The bytes of the ring in one step per half instead of N - 1; but across hosts each rank talks to all, not to a neighbour.
double twoshot_cost(Kind kind, const Terms& t) {
    const double part = t.bytes / t.n, rest = t.others() * part, far = t.per_host * t.strangers() * part;
    const double combine = t.step(part, t.others()) + t.moving(rest, rest, part, far);
    const double collect = t.step(part, t.others()) + t.moving(t.copies() * part, rest, 0, far);
    return (kind == Kind::all_gather ? 0 : combine) + (kind == Kind::scatter_reduce ? 0 : collect);
}

// log2 N rounds, and two more where N is no power of two, in which a rank reads its partner's K bytes and its own, and copies
// the sum for the next partner; log2 H of them cross the network, all ranks at once.
double doubling_cost(Kind, const Terms& t) {
    const bool fold = !std::has_single_bit(static_cast<unsigned>(t.n));
    const double rounds = std::floor(std::log2(t.n)) + (fold ? 2 : 0), bytes = rounds * t.bytes;
    return rounds * t.step(t.bytes, 1) + t.moving(bytes, bytes, 2 * bytes, t.per_host * t.log2_hosts() * t.bytes);
}

// log2 N levels with N - 1 messages in all; the root's memory or network carries K bytes for each of its log2 N children. Up
// and down again ranks have log2 N turns, not twice as many: who has got its result is in the next call before it waits.
double tree_cost(Kind kind, const Terms& t) {
    const double levels = t.log2_n(), ways = kind == Kind::all_reduce || kind == Kind::barrier ? 2 : 1;
    const double mean = t.others() / t.n / levels;
    const double move = t.share(mean) * t.handing(t.sending(t.bytes), t.receiving(t.bytes, t.bytes), t.bytes);
    return levels * (t.turn() + ways * (t.messages(t.bytes, 1, mean) + move));
}

// One step, but N - 1 times the bytes at the centre; unless it only shows memory, which the others read side by side. What fits
// inside messages is there when the centre's turn comes, and its answer when the others' come: one turn, not two.
double star_cost(Kind kind, const Terms& t) {
    const double mean = t.others() / t.n, far = t.strangers() * t.bytes;
    const double turns = Terms::fits_inside(t.bytes, t.link) ? 1 : 2;
    const auto in = [&](double each) {
        return t.messages(each, t.others(), mean) +
               t.handing(t.share(mean) * t.sending(each), t.receiving(t.others() * each, each), far);
    };
    const auto out = [&](double each, double copies) {
        return t.messages(each, t.others(), mean) +
               t.handing(t.sending(copies * each), t.share(mean) * t.receiving(each, 0), far);
    };
    if (kind == Kind::reduce) return t.turn() + in(t.bytes);
    if (kind == Kind::broadcast) return t.turn() + out(t.bytes, t.copies());
    // What goes back after a scatterReduce, and what comes in before an allGather, is K bytes for all ranks together.
    if (kind == Kind::scatter_reduce) return turns * t.turn() + in(t.bytes) + out(t.bytes / t.n, t.others());
    if (kind == Kind::all_gather) return turns * t.turn() + in(t.bytes / t.n) + out(t.bytes, t.copies());
    return turns * t.turn() + in(t.bytes) + out(t.bytes, t.copies());
}

// Two direct steps within the host and a ring of H across; the phases follow one another. All rings of a host together carry
// 2(H-1)/H * K bytes.
double hierarchical_cost(Kind, const Terms& t) {
    const double peers = t.per_host - 1, part = t.bytes / t.per_host;
    const double within =
        t.turn() + t.messages_over(t.near, part, peers, peers) + t.moving(peers * part, peers * part, part, 0);
    const double across = (t.hosts - 1) * t.step(part / t.hosts, 1) + (t.hosts - 1) / t.hosts * t.bytes * t.far_byte;
    return 2 * (within + across);
}

double pairwise_cost(Kind kind, const Terms& t) {
    const double bytes = kind == Kind::send || kind == Kind::recv ? t.bytes : t.others() * t.bytes;
    return t.step(t.bytes, t.others()) + t.moving(bytes, bytes, 0, bytes);
}

constexpr unsigned set_of(std::initializer_list<Kind> kinds) {
    unsigned set = 0;
    for (Kind kind : kinds) set |= 1u << static_cast<unsigned>(kind);
    return set;
}

struct Algorithm {
    const char* name;
    unsigned kinds;
    bool splits_sums;  // partial sums travel, which integer averages forbid
    bool by_host;      // needs several hosts with several ranks each, equally many
    double (*cost)(Kind, const Terms&);
    Plan (*plan)(const Shape&, const World&, int channels, int peer);
};

// Equal costs are decided by this order.
using enum Kind;
constexpr Algorithm kAlgorithms[] = {
    {"oneshot", set_of({all_reduce, barrier}), false, false, oneshot_cost,
     [](const Shape& s, const World& w, int, int) { return plan_oneshot(s, w); }},
    {"twoshot", set_of({all_reduce, scatter_reduce, all_gather, reduce}), false, false, twoshot_cost,
     [](const Shape& s, const World& w, int, int) { return plan_twoshot(s, w); }},
    {"doubling", set_of({all_reduce, barrier}), true, false, doubling_cost,
     [](const Shape& s, const World& w, int, int) { return plan_doubling(s, w); }},
    {"ring", set_of({all_reduce, scatter_reduce, all_gather, broadcast, reduce}), true, false, ring_cost,
     [](const Shape& s, const World& w, int channels, int) { return plan_ring(s, w, channels); }},
    {"hierarchical", set_of({all_reduce}), true, true, hierarchical_cost,
     [](const Shape& s, const World& w, int, int) { return plan_hierarchical(s, w); }},
    {"tree", set_of({all_reduce, broadcast, reduce, barrier}), true, false, tree_cost,
     [](const Shape& s, const World& w, int, int) { return plan_tree(s, w); }},
    {"star", set_of({all_reduce, scatter_reduce, all_gather, reduce, broadcast, barrier}), false, false, star_cost,
     [](const Shape& s, const World& w, int, int) { return plan_star(s, w); }},
    {"pairwise", set_of({gather, scatter, all_to_all, send, recv}), false, false, pairwise_cost,
     [](const Shape& s, const World& w, int, int peer) { return plan_pairwise(s, w, peer); }},
};

bool has_hierarchy(const World& world) {
    const std::vector<int> crew = crews(world);
    return crew.size() > 1 && crew[0] > 1 && std::all_of(crew.begin(), crew.end(), [&](int n) { return n == crew[0]; });
}

bool serves(const Algorithm& algorithm, const Shape& shape, const World& world) {
    return (algorithm.kinds & set_of({shape.kind})) != 0 && !(algorithm.splits_sums && needs_all_inputs(shape)) &&
           (!algorithm.by_host || has_hierarchy(world));
}

// One socket cannot fill a fast network; within a host there is nothing to gain.
int channels_for(const Shape& shape, const World& world) {
    return crews(world).size() > 1 && shape.count >= kManyChannels / type_size(shape.type) ? 2 : 1;
}

}  // namespace

std::vector<Candidate> candidates(const Shape& shape, const World& world, const CostModel& model) {
    if (world.size == 1) return {{"alone", 0}};
    const Terms terms = terms_of(shape, world, model);
    std::vector<Candidate> result;
    for (const Algorithm& algorithm : kAlgorithms) {
        if (serves(algorithm, shape, world)) result.push_back({algorithm.name, algorithm.cost(shape.kind, terms)});
    }
    std::stable_sort(result.begin(), result.end(),
                     [](const Candidate& a, const Candidate& b) { return a.microseconds < b.microseconds; });
    return result;
}

Plan choose_plan(const Shape& shape, const World& world, const CostModel& model, const std::string& wish, int channels,
                 int peer) {
    if (world.size == 1) return plan_alone(shape, world);
    const std::vector<Candidate> ranked = candidates(shape, world, model);
    const auto wished = std::find_if(ranked.begin(), ranked.end(), [&](const Candidate& candidate) {
        const std::string_view name = candidate.algorithm;
        return name == wish || (wish == "direct" && (name == "oneshot" || name == "twoshot"));
    });
    const std::string_view name = (wished == ranked.end() ? ranked.front() : *wished).algorithm;
    if (channels == 0) channels = channels_for(shape, world);
    const Algorithm& algorithm = *std::find_if(std::begin(kAlgorithms), std::end(kAlgorithms),
                                               [&](const Algorithm& candidate) { return candidate.name == name; });
    return algorithm.plan(shape, world, std::clamp(channels, 1, kLanes - 1), peer);
}

}  // namespace ringccl
