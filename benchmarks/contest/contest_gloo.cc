// Gloo over TCP, by the interface that PyTorch uses.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <unistd.h>

#include "contender.h"

namespace contest {
namespace {

class Gloo final : public Contender {
public:
    explicit Gloo(const World& world) {
        rank_ = world.rank;
        size_ = world.size;
        gloo::transport::tcp::attr where("127.0.0.1");
        auto device = gloo::transport::tcp::CreateDevice(where);
        auto store = std::make_shared<gloo::rendezvous::FileStore>(world.folder);
        auto context = std::make_shared<gloo::rendezvous::Context>(rank_, size_);
        // Older versions take the store itself.
        [&](auto& where_to_meet) {
            if constexpr (requires { context->connectFullMesh(where_to_meet, device); })
                context->connectFullMesh(where_to_meet, device);
            else
                context->connectFullMesh(*where_to_meet, device);
        }(store);
        context_ = context;
    }
    // Before this rank's sockets close, all others must be done too.
    ~Gloo() override { usleep(200000); }

    bool can(Move move, Type type) const override { return move != Move::reduce_scatter && type == Type::float32; }

    void perform(Move move, Type, const std::byte* send, std::byte* recv, size_t count) override {
        auto* in = reinterpret_cast<float*>(const_cast<std::byte*>(send));
        auto* out = reinterpret_cast<float*>(recv);
        const size_t block = count / static_cast<size_t>(size_);
        switch (move) {
            case Move::all_reduce: {
                gloo::AllreduceOptions call(context_);
                call.setInput(in, count);
                call.setOutput(out, count);
                call.setReduceFunction(
                    [](void* sum, const void* a, const void* b, size_t n) { gloo::sum<float>(sum, a, b, n); });
                return gloo::allreduce(call);
            }
            case Move::all_gather: {
                gloo::AllgatherOptions call(context_);
                call.setInput(in, block);
                call.setOutput(out, count);
                return gloo::allgather(call);
            }
            case Move::broadcast: {
                gloo::BroadcastOptions call(context_);
                if (rank_ == 0) call.setInput(in, count);
                call.setOutput(rank_ == 0 ? in : out, count);
                call.setRoot(0);
                return gloo::broadcast(call);
            }
            case Move::all_to_all: {
                gloo::AlltoallOptions call(context_);
                call.setInput(in, count);
                call.setOutput(out, count);
                return gloo::alltoall(call);
            }
            case Move::reduce_scatter:
                give_up("this interface of Gloo has no reduce-scatter");
        }
    }

    void share(void* data, size_t bytes) override {
        gloo::BroadcastOptions call(context_);
        if (rank_ == 0) call.setInput(static_cast<char*>(data), bytes);
        call.setOutput(static_cast<char*>(data), bytes);
        call.setRoot(0);
        gloo::broadcast(call);
    }

private:
    std::shared_ptr<gloo::Context> context_;
};

}  // namespace

const bool kHasLauncher = false;

std::unique_ptr<Contender> make_contender(const World& world) {
    return std::make_unique<Gloo>(world);
}

}  // namespace contest
