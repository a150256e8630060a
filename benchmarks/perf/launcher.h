// Starting ranks as processes of this host, and watching over them.
#pragma once

#include <functional>
#include <string>

#include "ringccl/ringccl.h"

namespace ringccl::perf {

// Whether torchrun, Open MPI, MPICH, Slurm or ringccl's own variables have made this process a rank of a job. It says the same
// as ringCommInitEnv, but opens nothing.
bool launched();
// This process's number among those that the launcher has started on this host; where the launcher does not tell, among all.
int launched_number();

// Hands the unique id from the process that makes it to the others. Made before the fork; a pipe, so that nobody else on the
// host can read the secret.
class IdPipe {
public:
    IdPipe();
    ~IdPipe();
    IdPipe(const IdPipe&) = delete;
    IdPipe& operator=(const IdPipe&) = delete;

    // All zeros tell the takers that there is no id. Throws std::runtime_error.
    void give(const ringUniqueId& id, int receivers);
    bool take(ringUniqueId& id);  // false: the giver has none

private:
    int reading_ = -1, writing_ = -1;
};

// Forks `count` processes, runs body(0) .. body(count - 1) in them and returns 0 when all have returned 0. A body that returns
// 1 has said why itself; one that dies or ends in another way is named on stderr, by describe(index). After the first failure
// the others have five seconds to say what they know, then they are killed, and the result is 1. Call it before anything has
// made a thread.
int run_processes(int count, const std::function<int(int)>& body, const std::function<std::string(int)>& describe);

}  // namespace ringccl::perf
