// Training that loses a rank and goes on: four processes fit a line through points, each with its share of them. Rank 2 is
// killed in the middle; the others hear of it in their next allReduce, make a communicator without it, bring everybody to the
// same step, share the points anew, and finish.
//
//     ./survive
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <ringccl/ringccl.hpp>
#include <vector>

namespace {

constexpr int kRanks = 4, kSteps = 200, kVictim = 2, kLastStep = 60;
constexpr int kPoints = 6000;

struct Model {
    std::array<double, 2> line = {0, 0};  // y = line[0] * x + line[1]
    int step = 0;
};

// Point i of y = 3x - 1.
double x_of(int i) {
    return (i % 1000) / 500.0 - 1;
}
double y_of(int i) {
    return 3 * x_of(i) - 1;
}

void train_one_step(Model& model, ring::Communicator& comm) {
    std::array<double, 2> gradient = {0, 0};
    for (int i = comm.rank(); i < kPoints; i += comm.size()) {
        const double error = model.line[0] * x_of(i) + model.line[1] - y_of(i);
        gradient[0] += 2 * error * x_of(i) / kPoints;
        gradient[1] += 2 * error / kPoints;
    }
    comm.allReduce(gradient, gradient);  // throws if a rank is lost; the model is still what it was
    for (int k = 0; k < 2; ++k) model.line[k] -= 0.1 * gradient[k];
    ++model.step;
}

// An allReduce may have ended well on some ranks before the loss and not on others: who is behind takes over from who is not.
void catch_up(Model& model, ring::Communicator& comm) {
    std::vector<int> mine = {model.step}, steps(comm.size());
    comm.allGather(mine, steps);
    int ahead = 0;
    for (int r = 0; r < comm.size(); ++r)
        if (steps[r] > steps[ahead]) ahead = r;
    comm.broadcast(model.line, ahead);
    model.step = steps[ahead];
}

// Makes a communicator of those that are left; another one may be lost meanwhile.
ring::Communicator survivors(const ring::Communicator& broken) {
    for (;;) {
        try {
            return broken.shrink(broken.failed());
        } catch (const ring::Error& error) {
            if (error.code() != ringRemoteError) throw;
        }
    }
}

void run(int rank, const ringUniqueId& id) {
    ringConfig_t config = RINGCCL_CONFIG_INITIALIZER;
    config.initTimeoutMs = 10000;  // how long survivors wait for each other
    ring::Communicator comm = ring::Communicator::join(id, kRanks, rank, &config);
    Model model;
    while (model.step < kSteps) {
        try {
            if (rank == kVictim && model.step == kLastStep) raise(SIGKILL);
            train_one_step(model, comm);
        } catch (const ring::Error& error) {
            std::printf("rank %d at step %d: %s\n", rank, model.step, error.what());
            comm = survivors(comm);
            catch_up(model, comm);
            std::printf("rank %d goes on at step %d as rank %d of %d\n", rank, model.step, comm.rank(), comm.size());
        }
    }
    std::printf("rank %d is done: y = %.6f x %+.6f\n", rank, model.line[0], model.line[1]);
}

}  // namespace

int main() {
    int ends[2];
    if (pipe(ends) != 0) return 1;
    for (int rank = 0; rank < kRanks; ++rank) {
        if (fork() != 0) continue;
        try {
            ringUniqueId id;
            if (rank == 0) {
                id = ring::Communicator::uniqueId();
                for (int other = 1; other < kRanks; ++other)
                    if (write(ends[1], &id, sizeof id) != sizeof id) return 1;
            } else if (read(ends[0], &id, sizeof id) != sizeof id) {
                return 1;
            }
            run(rank, id);
            return 0;
        } catch (const ring::Error& error) {
            std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
            return 1;
        }
    }
    int finished = 0, status;
    while (wait(&status) > 0) finished += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    std::printf("%d of %d ranks finished\n", finished, kRanks);
    return finished == kRanks - 1 ? 0 : 1;
}
