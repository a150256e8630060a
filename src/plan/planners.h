// The algorithms. Each is a pure function from (shape, world) to this rank's plan and lives in a file of its own.
#pragma once

#include "plan/link_cost.h"
#include "plan/plan.h"

namespace ringccl {

// Scatter-reduce and all-gather round a ring of chunks, `channels` of them side by side; chains for broadcast and reduce.
// Kinds: all_reduce, scatter_reduce, all_gather, broadcast, reduce.
Plan plan_ring(const Shape& shape, const World& world, int channels);

// Everybody publishes, everybody combines all: one step. Kinds: all_reduce, barrier.
Plan plan_oneshot(const Shape& shape, const World& world);

// Rank r combines chunk r of everybody, everybody takes it. Kinds: all_reduce, scatter_reduce, all_gather, reduce.
// Integer averages come here, to oneshot or to star: only a rank that sees all inputs at once can sum them wide.
Plan plan_twoshot(const Shape& shape, const World& world);

// Recursive doubling (all_reduce, barrier), any world size.
Plan plan_doubling(const Shape& shape, const World& world);

// Binomial tree (broadcast, reduce, and reduce followed by broadcast for all_reduce).
Plan plan_tree(const Shape& shape, const World& world);

// All at one rank: the parameter server. Kinds: all_reduce, scatter_reduce, all_gather, reduce, broadcast, barrier.
Plan plan_star(const Shape& shape, const World& world);

// Within the host, across hosts, within the host. Kind: all_reduce; needs equally many ranks on every host. With one host it is
// twoshot, with one rank a host ring.
Plan plan_hierarchical(const Shape& shape, const World& world);

// One channel per message, straight from sender to receiver. Kinds: gather, scatter, all_to_all, send, recv. A message to
// oneself is an empty plan.
Plan plan_pairwise(const Shape& shape, const World& world, int peer);

// One rank alone: local copies.
Plan plan_alone(const Shape& shape, const World& world);

// ---- choosing (plan/choose.cc) ----

struct CostModel {
    LinkCost local;   // between ranks of one host
    LinkCost remote;  // between hosts (equals local when there is one host)
    int cpus = 1;     // CPUs that the ranks of one host share
};

// Every algorithm that can carry out the shape in this world, with its predicted time, cheapest first.
struct Candidate {
    const char* algorithm;
    double microseconds;
};
std::vector<Candidate> candidates(const Shape& shape, const World& world, const CostModel& model);

// `wish` is RINGCCL_ALGORITHM: "auto" takes the cheapest; a name is followed where the kind has that algorithm ("direct" means
// oneshot or twoshot) and otherwise means auto. channels 0: chosen. Deterministic: all ranks get the same answer.
Plan choose_plan(const Shape& shape, const World& world, const CostModel& model, const std::string& wish, int channels,
                 int peer = -1);

// ---- printing (plan/print.cc) ----

// The whole plan, all ranks, as a table for people: step, who sends which chunk to whom, what is done with it.
std::string print_plan(const Shape& shape, const std::vector<Plan>& plans);

}  // namespace ringccl
