#include "device/block.h"

#include <mutex>
#include <unordered_map>

namespace ringccl {
namespace {

// The living blocks of this process by id. Never destroyed, since blocks may outlive other statics.
struct Living {
    std::mutex mutex;
    std::unordered_map<uint64_t, std::weak_ptr<Block>> blocks;
};
Living& living() {
    static auto* table = new Living;
    return *table;
}

}  // namespace

void Block::enrol(const std::shared_ptr<Block>& block) {
    std::lock_guard lock(living().mutex);
    std::erase_if(living().blocks, [](const auto& entry) { return entry.second.expired(); });
    living().blocks.emplace(block->id(), block);
}

std::shared_ptr<Block> Block::find(uint64_t id) {
    std::lock_guard lock(living().mutex);
    auto found = living().blocks.find(id);
    return found == living().blocks.end() ? nullptr : found->second.lock();
}

}  // namespace ringccl
