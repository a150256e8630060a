#include "device/cuda/words.h"

#include <mutex>
#include <vector>

#include "device/cuda/call.h"

namespace ringccl::cuda {
namespace {

constexpr size_t kSlabBytes = 4096, kSpacing = 64 / sizeof(uint32_t);  // a cache line each

// Never destroyed and never smaller.
struct Pool {
    std::mutex mutex;
    std::vector<uint32_t*> free;
};
Pool& pool() {
    static auto* words = new Pool;
    return *words;
}

}  // namespace

Result<Word> Word::take(int device) {
    std::lock_guard lock(pool().mutex);
    if (pool().free.empty()) {
        const OnDevice here(device);
        void* slab = nullptr;
        RINGCCL_CUDA_TRY(device, cudaHostAlloc(&slab, kSlabBytes, cudaHostAllocPortable | cudaHostAllocMapped));
        auto* words = static_cast<uint32_t*>(slab);
        for (size_t i = 0; i < kSlabBytes / sizeof(uint32_t); i += kSpacing) pool().free.push_back(words + i);
    }
    Word word(pool().free.back());
    pool().free.pop_back();
    word.set(0);
    return word;
}

Word::~Word() {
    if (at_ == nullptr) return;
    std::lock_guard lock(pool().mutex);
    pool().free.push_back(at_);
}

}  // namespace ringccl::cuda
