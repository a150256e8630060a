// Which plan is fastest. Hockney's model: a step costs alpha, a byte costs beta; the terms of the classic algorithms are those
// of Thakur, Rabenseifner and Gropp (Int. J. High Perform. Comput. Appl. 19(1), 2005). To that we add what a rank pays for each
// further message of a step (the overhead o of LogP: Culler et al., PPoPP 1993), that the ranks of a host share its network,
// and that ranks which share a CPU are switched to once per dependent step. A model is for ranking, not for prediction.
#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

#include "plan/pieces.h"
#include "plan/planners.h"

namespace ringccl {
namespace {

constexpr double kSwitchUs = 1.0;          // to let another rank of the same CPU go on
constexpr double kOverhead = 0.25;         // of alpha, for each message after a step's first
constexpr double kPipeline = 64 << 10;     // bytes that fill one hop of a chain
constexpr size_t kManyChannels = 8 << 20;  // bytes from which remote rings use more than one lane

// The world as the formulas see it. All times in microseconds, all sizes in bytes.
struct Terms {
    double n, hosts, per_host;     // ranks, hosts, ranks on the fullest host
    double bytes;                  // K: of the whole vector
    double step, near_step;        // alpha, and alpha within the host
    double message, near_message;  // o
    double near_byte, far_byte;    // beta
    bool visible;

    double log2_n() const { return std::ceil(std::log2(n)); }
    double log2_hosts() const { return std::ceil(std::log2(hosts)); }
    // One step in which a rank exchanges messages with m others.
    double step_to(double m) const { return step + (m - 1) * message; }
    // `near` bytes that a rank reads, its own operands too, and at the same time `far` bytes through its host's network.
    double moving(double near, double far) const { return std::max(near * near_byte, far * far_byte); }
    double others() const { return n - 1; }
    double strangers() const { return n - per_host; }  // ranks on other hosts
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
    // With more ranks than CPUs everything that a CPU does takes `load` times as long.
    const double load = std::max(1.0, std::ceil(double(per_host) / std::max(1, model.cpus)));
    const double sharing = load > 1 ? kSwitchUs * load : 0;
    Terms t;
    t.n = world.size, t.hosts = double(crew.size()), t.per_host = per_host;
    t.bytes = double(shape.count) * double(type_size(shape.type)) * (blocks ? t.n : 1);
    t.near_step = model.local.alpha_us + sharing;
    t.step = far ? model.remote.alpha_us + sharing : t.near_step;
    t.near_message = model.local.alpha_us * kOverhead * load;
    t.message = far ? model.remote.alpha_us * kOverhead * load : t.near_message;
    t.near_byte = model.local.us_per_byte * load;
    t.far_byte = far ? model.remote.us_per_byte : 0;
    t.visible = world.visible;
    return t;
}

// N - 1 steps of K/N bytes; reducing, a rank reads its own operand beside them. A host's ranks are neighbours in the ring, so a
// host sends one chunk a step over its network.
double ring_half(const Terms& t, bool reduces) {
    const double bytes = t.others() / t.n * t.bytes;
    return t.others() * t.step + t.moving(reduces ? 2 * bytes : bytes, bytes);
}

double ring_cost(Kind kind, const Terms& t) {
    if (kind == Kind::all_reduce) return ring_half(t, true) + ring_half(t, false);
    if (kind == Kind::scatter_reduce || kind == Kind::all_gather) return ring_half(t, kind == Kind::scatter_reduce);
    const double fill = std::min(t.bytes, kPipeline);  // a chain: each hop begins when the first slices are there
    const double reads = kind == Kind::reduce ? 2 : 1;
    return t.others() * (t.step + t.moving(reads * fill, fill)) + t.moving(reads * t.bytes, t.bytes);
}

// Everybody reads everybody: N vectors a rank, of which those from other hosts come over one network for all its ranks. That in
// place the input is copied first may not count: some ranks may call in place and others not, and all must choose alike.
double oneshot_cost(Kind, const Terms& t) {
    return t.step_to(t.others()) + t.moving(t.n * t.bytes, t.per_host * t.strangers() * t.bytes);
}

// The bytes of the ring in one step per half instead of N - 1; but across hosts each rank talks to all, not to a neighbour.
double twoshot_cost(Kind kind, const Terms& t) {
    const double far = t.per_host * t.strangers() / t.n * t.bytes;
    const double combine = t.step_to(t.others()) + t.moving(t.bytes, far);
    const double collect = t.step_to(t.others()) + t.moving(t.others() / t.n * t.bytes, far);
    return (kind == Kind::all_gather ? 0 : combine) + (kind == Kind::scatter_reduce ? 0 : collect);
}

// log2 N rounds, and two more where N is no power of two, in which a rank reads its partner's K bytes and its own, and copies
// the sum for the next partner; log2 H of them cross the network, all ranks at once.
double doubling_cost(Kind, const Terms& t) {
    const bool fold = !std::has_single_bit(static_cast<unsigned>(t.n));
    const double rounds = std::floor(std::log2(t.n)) + (fold ? 2 : 0);
    return rounds * t.step + t.moving(3 * rounds * t.bytes, t.per_host * t.log2_hosts() * t.bytes);
}

// log2 N levels; the root's memory or network carries K bytes for each of its log2 N children. Twice for up and down.
double tree_cost(Kind kind, const Terms& t) {
    const double once = t.log2_n() * t.step + t.moving(t.log2_n() * t.bytes, t.log2_n() * t.bytes);
    return kind == Kind::all_reduce || kind == Kind::barrier ? 2 * once : once;
}

// One step, but N - 1 times the bytes at the centre; unless it only shows memory, which the others read side by side.
double star_cost(Kind kind, const Terms& t) {
    const double in = t.step_to(t.others()) + t.moving(t.n * t.bytes, t.strangers() * t.bytes);
    const double out = t.step_to(t.others()) + t.moving((t.visible ? 1 : t.others()) * t.bytes, t.strangers() * t.bytes);
    if (kind == Kind::reduce) return in;
    if (kind == Kind::broadcast) return out;
    // What goes back after a scatterReduce, and what comes in before an allGather, is K bytes for all ranks together.
    if (kind == Kind::scatter_reduce) return in + t.step_to(t.others()) + t.moving(t.bytes, t.bytes);
    if (kind == Kind::all_gather) return out + t.step_to(t.others()) + t.moving(t.bytes, t.bytes);
    return in + out;
}

// Two direct steps within the host and a ring of H across; the phases follow one another. All rings of a host together carry
// 2(H-1)/H * K bytes.
double hierarchical_cost(Kind, const Terms& t) {
    const double within = t.near_step + (t.per_host - 2) * t.near_message + t.bytes * t.near_byte;
    const double across = (t.hosts - 1) * t.step + (t.hosts - 1) / t.hosts * t.bytes * t.far_byte;
    return 2 * (within + across);
}

double pairwise_cost(Kind kind, const Terms& t) {
    const double bytes = kind == Kind::send || kind == Kind::recv ? t.bytes : t.others() * t.bytes;
    return t.step_to(t.others()) + t.moving(bytes, bytes);
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
