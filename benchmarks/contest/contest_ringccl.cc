#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "contender.h"
#include "ringccl/ringccl.h"

namespace contest {
namespace {

class Ringccl final : public Contender {
public:
    explicit Ringccl(const World& world) : library_memory_(world.library_memory) {
        rank_ = world.rank;
        size_ = world.size;
        ringConfig_t config = RINGCCL_CONFIG_INITIALIZER;
        config.transport = world.transport.c_str();
        const ringUniqueId id = meet(world.folder);
        need(ringCommInitRankConfig(&comm_, size_, id, rank_, &config));
    }
    ~Ringccl() override { need(ringCommDestroy(comm_)); }

    bool can(Move, Type) const override { return true; }

    std::byte* allocate(size_t bytes) override {
        if (!library_memory_) return Contender::allocate(bytes);
        void* memory = nullptr;
        need(ringMemAlloc(&memory, bytes));
        return static_cast<std::byte*>(memory);
    }

    void perform(Move move, Type type, const std::byte* send, std::byte* recv, size_t count) override {
        const ringDataType_t t = type == Type::float32 ? ringFloat32 : ringBfloat16;
        const size_t block = count / static_cast<size_t>(size_);
        switch (move) {
            case Move::all_reduce:
                return need(ringAllReduce(send, recv, count, t, ringSum, comm_, nullptr));
            case Move::all_gather:
                return need(ringAllGather(send, recv, block, t, comm_, nullptr));
            case Move::reduce_scatter:
                return need(ringScatterReduce(send, recv, block, t, ringSum, comm_, nullptr));
            case Move::broadcast:
                if (rank_ == 0) recv = const_cast<std::byte*>(send);
                return need(ringBroadcast(recv, recv, count, t, 0, comm_, nullptr));
            case Move::all_to_all:
                return need(ringAllToAll(send, recv, block, t, comm_, nullptr));
        }
    }

    void share(void* data, size_t bytes) override { need(ringBroadcast(data, data, bytes, ringUint8, 0, comm_, nullptr)); }

private:
    static void need(ringResult_t result) {
        if (result != ringSuccess) give_up(ringGetLastError(nullptr));
    }

    // Rank 0 leaves the id in a file.
    ringUniqueId meet(const std::string& folder) const {
        const std::string file = folder + "/id", draft = file + ".part";
        ringUniqueId id{};
        if (rank_ == 0) {
            need(ringGetUniqueId(&id));
            std::ofstream(draft, std::ios::binary).write(reinterpret_cast<const char*>(&id), sizeof id);
            std::rename(draft.c_str(), file.c_str());
            return id;
        }
        for (;;) {
            std::ifstream in(file, std::ios::binary);
            if (in.read(reinterpret_cast<char*>(&id), sizeof id)) return id;
            usleep(1000);
        }
    }

    const bool library_memory_;
    ringComm_t comm_ = nullptr;
};

}  // namespace

const bool kHasLauncher = false;

std::unique_ptr<Contender> make_contender(const World& world) {
    return std::make_unique<Ringccl>(world);
}

}  // namespace contest
