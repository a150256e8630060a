// Any MPI, started by its own mpirun or mpiexec.
#include <mpi.h>

#include "contender.h"

namespace contest {
namespace {

class Mpi final : public Contender {
public:
    Mpi() {
        MPI_Init(nullptr, nullptr);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &size_);
    }
    ~Mpi() override { MPI_Finalize(); }

    // MPI has no bfloat16.
    bool can(Move, Type type) const override { return type == Type::float32; }

    void perform(Move move, Type, const std::byte* send, std::byte* recv, size_t count) override {
        const int all = static_cast<int>(count), block = all / size_;
        switch (move) {
            case Move::all_reduce:
                MPI_Allreduce(send, recv, all, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
                break;
            case Move::all_gather:
                MPI_Allgather(send, block, MPI_FLOAT, recv, block, MPI_FLOAT, MPI_COMM_WORLD);
                break;
            case Move::reduce_scatter:
                MPI_Reduce_scatter_block(send, recv, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
                break;
            case Move::broadcast:
                MPI_Bcast(rank_ == 0 ? const_cast<std::byte*>(send) : recv, all, MPI_FLOAT, 0, MPI_COMM_WORLD);
                break;
            case Move::all_to_all:
                MPI_Alltoall(send, block, MPI_FLOAT, recv, block, MPI_FLOAT, MPI_COMM_WORLD);
                break;
        }
    }

    void share(void* data, size_t bytes) override { MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, 0, MPI_COMM_WORLD); }
};

}  // namespace

const bool kHasLauncher = true;

std::unique_ptr<Contender> make_contender(const World&) {
    return std::make_unique<Mpi>();
}

}  // namespace contest
