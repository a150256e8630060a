#include "bootstrap/launcher.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

namespace ringccl {
namespace {

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

std::optional<int> number(const std::string& text) {
    int value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

// Names and values of variables, for an identity.
template <class... Names>
std::string together(Names... names) {
    std::string text;
    ((text += fmt::format("{}={};", names, variable(names))), ...);
    return text;
}

struct Launcher {
    const char* name;
    const char* rank;
    const char* size;
    const char* other_size;  // used if `size` is not set
};
constexpr Launcher kLaunchers[] = {
    {"ringccl", "RINGCCL_RANK", "RINGCCL_WORLD_SIZE", nullptr},
    {"torchrun", "RANK", "WORLD_SIZE", nullptr},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},
    {"MPICH", "PMI_RANK", "PMI_SIZE", nullptr},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
};

// Hydra tells its processes nothing that names the job, and puts each into a session of its own. Those of one host have a
// common ancestor, though, perhaps with shells between; its process id and start time name the job on this host.
std::string hydra_ancestor() {
    std::string process = std::to_string(::getppid());
    for (int depth = 0; depth < 32 && process != "0" && !process.empty(); ++depth) {
        std::ifstream file("/proc/" + process + "/stat");
        std::string stat((std::istreambuf_iterator<char>(file)), {});
        size_t open = stat.find('('), close = stat.rfind(')');  // the name may itself hold parentheses
        if (open == std::string::npos || close == std::string::npos) break;
        std::istringstream rest(stat.substr(close + 1));
        std::string field, parent, started;
        for (int i = 3; i <= 22 && rest >> field; ++i) {  // proc(5): 4 is the parent, 22 the start time
            if (i == 4) parent = field;
            if (i == 22) started = field;
        }
        if (stat.substr(open + 1, close - open - 1).starts_with("hydra_")) return process + "@" + started;
        process = parent;
    }
    return "";
}

void ask_torchrun(Job& job) {
    job.host = variable("MASTER_ADDR");
    // The port itself belongs to torch's own store.
    job.identity = together("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT");
}

void ask_open_mpi(Job& job) {
    job.identity = together("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid");
    if (number(variable("OMPI_COMM_WORLD_LOCAL_SIZE")) == job.size) job.host = "localhost";
}

// Rank 0 runs on the first host of the step for every distribution that Slurm has. The host that srun was called on is a
// different matter (often a login node), and only a last resort.
void ask_slurm(Job& job) {
    job.identity = together("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT");
    for (const char* hosts : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"})
        if (job.host.empty()) job.host = first_host(variable(hosts));
    if (job.host.empty()) job.host = variable("SLURM_LAUNCH_NODE_IPADDR");
    std::string nodes = variable("SLURM_STEP_NUM_NODES");
    if (number(nodes.empty() ? variable("SLURM_NNODES") : nodes) == 1) job.host = "localhost";
}

void ask_pmi(Job& job) {
    // srun --mpi=pmi2 speaks PMI as well; then Slurm knows the rest.
    if (variable("SLURM_PROCID") == variable("PMI_RANK")) return ask_slurm(job);
    std::string hydra = hydra_ancestor();
    bool local = number(variable("MPI_LOCALNRANKS")) == job.size && !hydra.empty();
    if (local) job.host = "localhost";
    job.identity = local ? "hydra=" + hydra : "hydra";
}

// What this launcher says; size 0 if it says nothing.
Result<Job> ask(const Launcher& launcher) {
    Job job;
    job.size = 0;
    std::string rank = variable(launcher.rank), size = variable(launcher.size);
    const char* size_name = launcher.size;
    if (size.empty() && launcher.other_size) size = variable(size_name = launcher.other_size);
    bool own = launcher.name == kLaunchers[0].name;
    if (own && rank.empty() != size.empty())
        return failure(ringInvalidUsage, "{} is set but {} is not; set both", rank.empty() ? size_name : launcher.rank,
                       rank.empty() ? launcher.rank : size_name);
    if (rank.empty() || size.empty()) return job;

    job.launcher = launcher.name;
    auto rank_number = number(rank), size_number = number(size);
    if (!size_number || *size_number < 1)
        return failure(ringInvalidUsage, "{}={} is not a number of ranks; {} should set it to 1 or more", size_name, size,
                       own ? "you" : launcher.name);
    if (!rank_number || *rank_number < 0 || *rank_number >= *size_number)
        return failure(ringInvalidUsage, "{}={} is not a rank of a world of {} ({}={}); ranks count from 0", launcher.rank,
                       rank, *size_number, size_name, size);
    job.rank = *rank_number;
    job.size = *size_number;
    return job;
}

constexpr PlaceVariable kPlaceVariables[] = {
    {"RINGCCL_RANK", "This process's rank. Set it with the next two where no launcher is recognised.", false},
    {"RINGCCL_WORLD_SIZE", "How many ranks the job has.", false},
    {"RINGCCL_ROOT",
     "Where the ranks meet: host:port or [IPv6 address]:port, the host of rank 0 and a port that is free there. Overrules what "
     "a "
     "launcher says.",
     false},
    {"RINGCCL_SECRET", "A passphrase that all ranks share and nobody else knows, from which the job's secret is derived.",
     true},
};

}  // namespace

std::span<const PlaceVariable> place_variables() {
    return kPlaceVariables;
}

Result<Job> job_in_environment() {
    for (const Launcher& launcher : kLaunchers) {
        RINGCCL_ASSIGN(Job job, ask(launcher));
        if (job.size == 0) continue;
        if (job.launcher == "torchrun") ask_torchrun(job);
        if (job.launcher == "Open MPI") ask_open_mpi(job);
        if (job.launcher == "MPICH") ask_pmi(job);
        if (job.launcher == "Slurm") ask_slurm(job);
        if (std::string root = variable("RINGCCL_ROOT"); !root.empty()) {
            RINGCCL_TRY(parse_root(root, job.host, job.port));
            job.identity += together("RINGCCL_ROOT");
        }
        if (job.size == 1 && job.host.empty()) job.host = "localhost";
        return job;
    }
    return failure(ringInvalidUsage,
                   "no launcher is recognised in the environment; start with torchrun, mpirun or srun, or set RINGCCL_RANK, "
                   "RINGCCL_WORLD_SIZE and RINGCCL_ROOT=host:port in every process");
}

Status parse_root(const std::string& text, std::string& host, uint16_t& port) {
    size_t colon = text.rfind(':');
    auto wrong = [&] {
        return failure(ringInvalidUsage, "RINGCCL_ROOT={} is not host:port or [IPv6 address]:port with a port from 1 to 65535",
                       text);
    };
    if (colon == std::string::npos || colon == 0) return wrong();
    std::string name = text.substr(0, colon);
    auto value = number(text.substr(colon + 1));
    if (!value || *value < 1 || *value > 65535) return wrong();
    if (name.front() == '[' && name.back() == ']' && name.size() > 2)
        name = name.substr(1, name.size() - 2);
    else if (name.find_first_of("[]:") != std::string::npos)
        return wrong();
    host = name;
    port = static_cast<uint16_t>(*value);
    return {};
}

std::string first_host(const std::string& nodelist) {
    std::string host;
    for (size_t at = 0; at < nodelist.size() && nodelist[at] != ','; ++at) {
        if (nodelist[at] != '[') {
            host += nodelist[at];
            continue;
        }
        size_t end = std::min(nodelist.find(']', at), nodelist.size());
        std::string choices = nodelist.substr(at + 1, end - at - 1);
        host += choices.substr(0, choices.find_first_of("-,"));
        at = end;
    }
    return host;
}

}  // namespace ringccl
