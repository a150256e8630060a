#include "communicator/programs.h"

#include <algorithm>

#include "base/cpus.h"
#include "topology/topology.h"
#include "trace/log.h"

namespace ringccl {
namespace {

// A training job has a few dozen shapes; a caller whose counts never repeat must not eat memory.
constexpr size_t kKept = 512;

Sizes sizes_of(const World& world, const CostModel& costs, size_t stage_bytes, const Settings& settings) {
    const size_t slice = std::min(costs.local.slice_bytes, costs.remote.slice_bytes);
    // Two buffers per rank.
    const size_t half_of_cache = last_level_cache() / 2 / (2 * static_cast<size_t>(local_ranks(world)));
    return {settings.slice_bytes > 0 ? static_cast<size_t>(settings.slice_bytes) : slice, stage_bytes,
            settings.stream_bytes > 0 ? static_cast<size_t>(settings.stream_bytes) : half_of_cache};
}

}  // namespace

size_t Programs::KeyHash::operator()(const Key& key) const {
    constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;  // 2^64 / the golden ratio: Fibonacci hashing (Knuth, TAOCP 3, 6.4)
    uint64_t hash = key.shape.count;
    for (uint64_t part :
         {static_cast<uint64_t>(key.shape.kind), static_cast<uint64_t>(key.shape.type), static_cast<uint64_t>(key.shape.op),
          static_cast<uint64_t>(key.shape.root), static_cast<uint64_t>(key.shape.in_place), static_cast<uint64_t>(key.shift),
          static_cast<uint64_t>(key.peer)})
        hash = hash * kGolden + part;
    return hash * kGolden >> 7;
}

Programs::Programs(const Fabric& fabric, Device& device, Wiring wiring, const Settings& settings)
    : fabric_(fabric),
      device_(device),
      wiring_(std::move(wiring)),
      settings_(settings),
      sizes_(sizes_of(fabric.world(), fabric.costs(), fabric.stage_bytes(), settings)) {}

void Programs::trim() {
    if (made_.size() <= kKept) return;
    made_.clear();
    last_ = nullptr;
}
Result<Program*> Programs::find_or_make(const Operation& operation, uint64_t record, int shift) {
    const Fingerprint& print = operation.print;
    const bool in_place = operation.send == operation.recv && operation.send != nullptr;
    const Key key{{print.kind, operation.type(), print.op, static_cast<size_t>(print.count), print.root, in_place},
                  shift,
                  operation.peer};
    if (last_ != nullptr && key == last_key_) return last_;
    if (auto found = made_.find(key); found != made_.end()) {
        last_key_ = key;
        return last_ = found->second.get();
    }

    const World& world = fabric_.world();
    const Plan plan = choose_plan(key.shape, world, fabric_.costs(), settings_.algorithm, static_cast<int>(settings_.channels),
                                  operation.peer);
    const bool pair = print.kind == Kind::send || print.kind == Kind::recv;
    RINGCCL_ASSIGN(auto program, Program::make(plan, key.shape, world, shift, sizes_, device_, wiring_,
                                               Wiring::Cause{pair ? std::nullopt : std::optional(print.sequence), record}));
    log().debug("rank {}: {} of {} {} goes by {}", world.rank, kind_name(print.kind), print.count, type_name(operation.type()),
                plan.algorithm);
    return made_.emplace(key, std::move(program)).first->second.get();
}

}  // namespace ringccl
