#include "perf/launcher.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

namespace ringccl::perf {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLastWords = std::chrono::seconds(5);

bool is_set(const char* name) {
    const char* value = std::getenv(name);
    return value && *value;
}

// In an allocation but outside srun, a lone process has SLURM_PROCID 0 too.
bool under_srun() {
    return is_set("SLURM_PROCID") && is_set("SLURM_NTASKS") && std::atoi(std::getenv("SLURM_NTASKS")) > 1;
}

pid_t start(int index, pid_t parent, const std::function<int(int)>& body) {
    pid_t child = fork();
    if (child != 0) return child;
    // However the parent goes, nobody is left behind; it may have gone before the request was made.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    int code = body(index);
    std::fflush(nullptr);
    _exit(code);
}

std::string ending(int status) {
    if (WIFSIGNALED(status)) {
        return fmt::format("was ended by signal {} ({})", WTERMSIG(status), sigdescr_np(WTERMSIG(status)));
    }
    return fmt::format("failed with exit code {}", WEXITSTATUS(status));
}

}  // namespace

bool launched() {
    return is_set("RINGCCL_RANK") || (is_set("RANK") && is_set("WORLD_SIZE")) || is_set("OMPI_COMM_WORLD_RANK") ||
           is_set("PMI_RANK") || under_srun();
}

int launched_number() {
    for (const char* name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "RINGCCL_RANK",
                             "RANK", "PMI_RANK", "SLURM_PROCID"}) {
        if (is_set(name)) return std::atoi(std::getenv(name));
    }
    return 0;
}

IdPipe::IdPipe() {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error(fmt::format("pipe: {} (errno {})", std::strerror(errno), errno));
    reading_ = ends[0];
    writing_ = ends[1];
}

IdPipe::~IdPipe() {
    close(writing_);
    close(reading_);
}

// One copy per receiver. All reads and writes are of whole ids and no longer than PIPE_BUF, hence never torn.
void IdPipe::give(const ringUniqueId& id, int receivers) {
    for (int i = 0; i < receivers; ++i) {
        if (write(writing_, id.internal, sizeof id.internal) != static_cast<ssize_t>(sizeof id.internal)) {
            throw std::runtime_error(fmt::format("handing out the unique id: {} (errno {})", std::strerror(errno), errno));
        }
    }
}

bool IdPipe::take(ringUniqueId& id) {
    if (read(reading_, id.internal, sizeof id.internal) != static_cast<ssize_t>(sizeof id.internal)) return false;
    return std::ranges::any_of(id.internal, [](char byte) { return byte != 0; });
}

int run_processes(int count, const std::function<int(int)>& body, const std::function<std::string(int)>& describe) {
    std::fflush(nullptr);  // or every child would print what is still buffered
    std::vector<pid_t> running;
    std::vector<pid_t> pids;
    bool failed = false;
    Clock::time_point patience;
    auto fail = [&] {
        if (!failed) patience = Clock::now() + kLastWords;
        failed = true;
    };

    for (int index = 0; index < count && !failed; ++index) {
        pid_t child = start(index, getpid(), body);
        if (child < 0) {
            fmt::print(stderr, "fork of {}: {} (errno {})\n", describe(index), std::strerror(errno), errno);
            fail();
            patience = Clock::now();
            break;
        }
        pids.push_back(child);
        running.push_back(child);
    }
    bool killed = false;
    while (!running.empty()) {
        int status = 0;
        pid_t ended = waitpid(-1, &status, failed && !killed ? WNOHANG : 0);
        if (ended > 0) {
            auto gone = std::ranges::find(running, ended);
            if (gone == running.end()) continue;
            running.erase(gone);
            if (status != 0) {
                auto index = static_cast<int>(std::ranges::find(pids, ended) - pids.begin());
                bool has_spoken = WIFEXITED(status) && WEXITSTATUS(status) == 1;
                if (!killed && !has_spoken) fmt::print(stderr, "{} (pid {}) {}\n", describe(index), ended, ending(status));
                fail();
            }
        } else if (failed && !killed && Clock::now() >= patience) {
            for (pid_t pid : running) kill(pid, SIGKILL);
            killed = true;
        } else if (ended == 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        } else if (errno != EINTR) {
            return 1;  // no children left that could be waited for
        }
    }
    return failed ? 1 : 0;
}

}  // namespace ringccl::perf
