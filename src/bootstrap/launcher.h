// What the environment of a process says about the job it belongs to. docs/wire.md has the table of variables.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace ringccl {

struct Job {
    int rank = 0;
    int size = 1;
    std::string launcher;  // "ringccl", "torchrun", "Open MPI", "MPICH", "Slurm"
    std::string identity;  // the same text in all ranks, another in every other job as far as the launcher allows
    std::string host;      // rank 0's; "" if the launcher does not tell
    uint16_t port = 0;     // of the meeting point; 0 if it is to be derived from the identity
};

// Own variables win, then torchrun, Open MPI, MPICH/PMI, Slurm: who was started by torchrun inside of Slurm sees both, and the
// inner one is meant. RINGCCL_ROOT, where set, overrules the launcher's idea of rank 0's host.
// ringInvalidUsage: no launcher is recognised, or a variable is missing or makes no sense; the text names it.
Result<Job> job_in_environment();

// The variables of our own that place a process in its job, with what they do: for ringccl-info and docs/tuning.md. They are no
// settings of a communicator, so they are not in the table of base/knobs.h; only ringCommInitEnv reads them.
struct PlaceVariable {
    const char* name;
    const char* help;
    bool confidential;  // not to be printed
};
std::span<const PlaceVariable> place_variables();

// "host:port" or "[v6 address]:port", as in RINGCCL_ROOT. ringInvalidUsage: it is neither.
Status parse_root(const std::string& text, std::string& host, uint16_t& port);

// The first host of Slurm's compressed list: "node01" for "node[01-04,07],gpu3".
std::string first_host(const std::string& nodelist);

}  // namespace ringccl
