#include "support/process_ranks.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "support/device_side.h"

namespace ringccl::test {
namespace {

struct Pipe {
    Fd read, write;

    Pipe() {
        int ends[2];
        if (pipe(ends) != 0) std::abort();
        read.reset(ends[0]);
        write.reset(ends[1]);
    }
};

struct Child {
    pid_t pid = -1;
    Fd words;  // what it has to say; empty if all is well
};

Child fork_child(int index, const std::function<Verdict(int)>& body) {
    Pipe pipe;
    std::fflush(nullptr);  // or the child would print the parent's buffered output again
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid != 0) return {pid, std::move(pipe.read)};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // the parent went before prctl
    pipe.read.reset();
    Verdict verdict = body(index);
    if (!verdict) {
        std::string text = verdict.message();
        [[maybe_unused]] ssize_t written = write(pipe.write.get(), text.data(), text.size());
    }
    std::fflush(nullptr);
    _exit(verdict ? 0 : 1);
}

// Reads to the end of the child's words. False at the deadline.
bool listen(Child& child, Deadline deadline, std::string& words) {
    for (;;) {
        pollfd ready = {child.words.get(), POLLIN, 0};
        if (poll(&ready, 1, int(deadline.left().count())) == 0) return false;
        char text[512];
        ssize_t bytes = read(child.words.get(), text, sizeof(text));
        if (bytes <= 0) return true;
        words.append(text, bytes);
    }
}

}  // namespace

Verdict judge_processes(int count, const std::function<Verdict(int)>& body, int seconds) {
    std::vector<Child> children;
    for (int i = 0; i < count; ++i) children.push_back(fork_child(i, body));
    Deadline deadline = Deadline::after(std::chrono::seconds(seconds));
    std::string failures;
    for (int i = 0; i < count; ++i) {
        std::string words;
        if (!listen(children[i], deadline, words)) {
            words += fmt::format("not done after {} s", seconds);
            kill(children[i].pid, SIGKILL);
        }
        int status = 0;
        waitpid(children[i].pid, &status, 0);
        if (WIFSIGNALED(status)) words += fmt::format(" (died of {})", strsignal(WTERMSIG(status)));
        if (status == 0) continue;
        // The others may now wait for one that will not come; their words are still worth a while.
        deadline = Deadline(std::min(deadline.at(), Deadline::after(std::chrono::seconds(30)).at()));
        failures += fmt::format("process {} of {}: {}\n", i, count, words);
    }
    return failures.empty() ? good() : bad("{}", failures);
}

void fork_processes(int count, const std::function<Verdict(int)>& body, int seconds) {
    EXPECT_TRUE(judge_processes(count, body, seconds));
}

void run_processes(const WorldOptions& options, const Body& body, const std::function<Verdict(int)>& prepare) {
    std::vector<Pipe> pipes(options.size);
    fork_processes(options.size, [&](int rank) {
        Verdict ready = prepare ? prepare(rank) : good();
        ringUniqueId id{};
        if (rank == 0) {
            if (ready) ready = worked(ringGetUniqueId(&id), "ringGetUniqueId");
            // An id of zeros tells the others that there is none; they must not wait for it.
            for (Pipe& pipe : pipes)
                if (write(pipe.write.get(), &id, sizeof(id)) != sizeof(id)) return bad("cannot hand out the id");
        } else if (ready && read(pipes[rank].read.get(), &id, sizeof(id)) != sizeof(id)) {
            ready = bad("rank 0 gave no id");
        }
        if (!ready) return ready;
        pipes.clear();
        ringConfig_t config = options.config();
        Member me{nullptr, rank, options.size};
        if (ready = enter_side(me, config); !ready) return ready;
        Verdict made = worked(ringCommInitRankConfig(&me.comm, me.size, id, rank, &config), "ringCommInitRankConfig");
        if (!made) return made;
        Verdict verdict = body(me);
        if (!verdict) ringCommAbort(me.comm);
        Verdict destroyed = worked(ringCommDestroy(me.comm), "ringCommDestroy");
        return verdict ? destroyed : verdict;
    });
}

}  // namespace ringccl::test
