#include "communicator/programs.h"

#include "trace/log.h"

namespace ringccl {
namespace {

// A training job has a few dozen shapes; a caller whose counts never repeat must not eat memory.
constexpr size_t kKept = 512;

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

void Programs::trim() {
    if (made_.size() > kKept) made_.clear();
}

Result<Program*> Programs::find_or_make(const Operation& operation, uint64_t record, int shift) {
    const Fingerprint& print = operation.print;
    const bool in_place = operation.send == operation.recv && operation.send != nullptr;
    const Key key{{print.kind, operation.type(), print.op, static_cast<size_t>(print.count), print.root, in_place},
                  shift,
                  operation.peer};
    if (auto found = made_.find(key); found != made_.end()) return found->second.get();

    const World& world = fabric_.world();
    const Plan plan = choose_plan(key.shape, world, fabric_.costs(), settings_.algorithm, static_cast<int>(settings_.channels),
                                  operation.peer);
    const bool pair = print.kind == Kind::send || print.kind == Kind::recv;
    RINGCCL_ASSIGN(auto program, Program::make(plan, key.shape, world, shift, static_cast<size_t>(settings_.slice_bytes),
                                               static_cast<size_t>(settings_.stage_bytes), wiring_,
                                               Wiring::Cause{pair ? std::nullopt : std::optional(print.sequence), record}));
    log().debug("rank {}: {} of {} {} goes by {}", world.rank, kind_name(print.kind), print.count, type_name(operation.type()),
                plan.algorithm);
    return made_.emplace(key, std::move(program)).first->second.get();
}

}  // namespace ringccl
