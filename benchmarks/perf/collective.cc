#include "perf/collective.h"

#include <algorithm>
#include <array>

namespace ringccl::perf {
namespace {

using InPlace = Layout::InPlace;

bool is_root(const Job& job) {
    return job.rank == job.root;
}
int left(const Job& job) {
    return (job.rank + job.world - 1) % job.world;
}
int right(const Job& job) {
    return (job.rank + 1) % job.world;
}

// One segment of `count` elements from each rank, one after the other, each beginning at the sender's index `first`.
std::vector<Segment> from_everyone(const Job& job, uint64_t first) {
    std::vector<Segment> segments;
    for (int r = 0; r < job.world; ++r) segments.push_back({r * job.count, job.count, r, first});
    return segments;
}

double one(int) {
    return 1.0;
}
double share_of_others(int world) {
    return (world - 1.0) / world;
}
double twice_share_of_others(int world) {
    return 2.0 * (world - 1) / world;
}
double share_of_one(int world) {
    return world > 1 ? 1.0 / world : 0.0;
}
double one_if_others(int world) {
    return world > 1 ? 1.0 : 0.0;
}

// Bandwidth as in nccl-tests' doc/PERFORMANCE.md; the message size of the divided ones is that of all ranks' parts together.
constexpr auto kCollectives = std::to_array<Collective>({
    {.program = "allreduce_perf",
     .name = "allReduce",
     .reduces = true,
     .rooted = false,
     .divided = false,
     .layout =
         [](const Job& j) {
             return Layout{j.count, j.count, InPlace{}};
         },
     .expected =
         [](const Job& j) {
             return std::vector<Segment>{{0, j.count, kReduced, 0}};
         },
     .run = [](const Call& c) { return ringAllReduce(c.send, c.recv, c.job.count, c.type, c.op, c.comm, c.stream); },
     .bus_factor = twice_share_of_others,
     .sent_factor = twice_share_of_others},
    {.program = "scatter_reduce_perf",
     .name = "scatterReduce",
     .reduces = true,
     .rooted = false,
     .divided = true,
     .layout =
         [](const Job& j) {
             return Layout{j.world * j.count, j.count, InPlace{0, j.rank * j.count}};
         },
     .expected =
         [](const Job& j) {
             return std::vector<Segment>{{0, j.count, kReduced, j.rank * j.count}};
         },
     .run = [](const Call& c) { return ringScatterReduce(c.send, c.recv, c.job.count, c.type, c.op, c.comm, c.stream); },
     .bus_factor = share_of_others,
     .sent_factor = share_of_others},
    {.program = "all_gather_perf",
     .name = "allGather",
     .reduces = false,
     .rooted = false,
     .divided = true,
     .layout =
         [](const Job& j) {
             return Layout{j.count, j.world * j.count, InPlace{j.rank * j.count, 0}};
         },
     .expected = [](const Job& j) { return from_everyone(j, 0); },
     .run = [](const Call& c) { return ringAllGather(c.send, c.recv, c.job.count, c.type, c.comm, c.stream); },
     .bus_factor = share_of_others,
     .sent_factor = share_of_others},
    {.program = "broadcast_perf",
     .name = "broadcast",
     .reduces = false,
     .rooted = true,
     .divided = false,
     .layout =
         [](const Job& j) {
             return Layout{is_root(j) ? j.count : 0, j.count, InPlace{}};
         },
     .expected =
         [](const Job& j) {
             return std::vector<Segment>{{0, j.count, j.root, 0}};
         },
     .run = [](const Call& c) { return ringBroadcast(c.send, c.recv, c.job.count, c.type, c.job.root, c.comm, c.stream); },
     .bus_factor = one,
     .sent_factor = one_if_others},
    {.program = "reduce_perf",
     .name = "reduce",
     .reduces = true,
     .rooted = true,
     .divided = false,
     .layout =
         [](const Job& j) {
             return Layout{j.count, is_root(j) ? j.count : 0, InPlace{}};
         },
     .expected =
         [](const Job& j) {
             return is_root(j) ? std::vector<Segment>{{0, j.count, kReduced, 0}} : std::vector<Segment>{};
         },
     .run = [](const Call& c) { return ringReduce(c.send, c.recv, c.job.count, c.type, c.op, c.job.root, c.comm, c.stream); },
     .bus_factor = one,
     .sent_factor = one_if_others},
    {.program = "gather_perf",
     .name = "gather",
     .reduces = false,
     .rooted = true,
     .divided = true,
     .layout =
         [](const Job& j) {
             return is_root(j) ? Layout{j.count, j.world * j.count, InPlace{j.root * j.count, 0}}
                               : Layout{j.count, 0, InPlace{}};
         },
     .expected = [](const Job& j) { return is_root(j) ? from_everyone(j, 0) : std::vector<Segment>{}; },
     .run = [](const Call& c) { return ringGather(c.send, c.recv, c.job.count, c.type, c.job.root, c.comm, c.stream); },
     .bus_factor = share_of_others,
     .sent_factor = share_of_one},
    {.program = "scatter_perf",
     .name = "scatter",
     .reduces = false,
     .rooted = true,
     .divided = true,
     .layout =
         [](const Job& j) {
             return is_root(j) ? Layout{j.world * j.count, j.count, InPlace{0, j.root * j.count}}
                               : Layout{0, j.count, InPlace{}};
         },
     .expected =
         [](const Job& j) {
             return std::vector<Segment>{{0, j.count, j.root, j.rank * j.count}};
         },
     .run = [](const Call& c) { return ringScatter(c.send, c.recv, c.job.count, c.type, c.job.root, c.comm, c.stream); },
     .bus_factor = share_of_others,
     .sent_factor = share_of_others},
    {.program = "alltoall_perf",
     .name = "allToAll",
     .reduces = false,
     .rooted = false,
     .divided = true,
     .layout =
         [](const Job& j) {
             return Layout{j.world * j.count, j.world * j.count, {}};
         },
     .expected = [](const Job& j) { return from_everyone(j, j.rank * j.count); },
     .run = [](const Call& c) { return ringAllToAll(c.send, c.recv, c.job.count, c.type, c.comm, c.stream); },
     .bus_factor = share_of_others,
     .sent_factor = share_of_others},
    // Every rank sends to its right neighbour while it receives from its left one.
    {.program = "sendrecv_perf",
     .name = "sendRecv",
     .reduces = false,
     .rooted = false,
     .divided = false,
     .layout =
         [](const Job& j) {
             return Layout{j.count, j.count, {}};
         },
     .expected =
         [](const Job& j) {
             return std::vector<Segment>{{0, j.count, left(j), 0}};
         },
     .run =
         [](const Call& c) {
             if (ringResult_t result = ringGroupStart(); result != ringSuccess) return result;
             ringResult_t sent = ringSend(c.send, c.job.count, c.type, right(c.job), c.comm, c.stream);
             ringResult_t received = ringRecv(c.recv, c.job.count, c.type, left(c.job), c.comm, c.stream);
             ringResult_t ended = ringGroupEnd();
             return sent != ringSuccess ? sent : received != ringSuccess ? received : ended;
         },
     .bus_factor = one,
     .sent_factor = one_if_others},
});

}  // namespace

// A size below one element a rank still means one, so that a sweep from 8 bytes up works for any type and world size.
size_t Collective::count_for(size_t bytes, size_t element, int world) const {
    if (bytes == 0) return 0;
    return std::max<size_t>(1, bytes / element / (divided ? world : 1));
}

std::span<const Collective> collectives() {
    return kCollectives;
}

const Collective* find_collective(std::string_view program) {
    auto found = std::ranges::find_if(kCollectives, [&](const Collective& c) { return c.program == program; });
    return found == kCollectives.end() ? nullptr : &*found;
}

}  // namespace ringccl::perf
