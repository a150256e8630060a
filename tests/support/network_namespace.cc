#include "support/network_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/fd.h"

namespace ringccl::test {

NetworkNamespace::NetworkNamespace() {
    int report[2];
    if (pipe(report) != 0) std::abort();
    holder_ = fork();
    if (holder_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int error = unshare(CLONE_NEWNET) == 0 ? 0 : errno;
        if (write(report[1], &error, sizeof(error)) != sizeof(error) || error) _exit(1);
        for (;;) pause();
    }
    Fd read_end(report[0]), write_end(report[1]);
    int error = 0;
    if (read(read_end.get(), &error, sizeof(error)) != sizeof(error)) error = ECHILD;
    if (error) failed_ = fmt::format("no network namespaces here: {} (it takes root)", std::strerror(error));
}

NetworkNamespace::~NetworkNamespace() {
    kill(holder_, SIGKILL);
    waitpid(holder_, nullptr, 0);
}

Verdict NetworkNamespace::enter() const {
    Fd at(open(fmt::format("/proc/{}/ns/net", holder_).c_str(), O_RDONLY | O_CLOEXEC));
    if (setns(at.get(), CLONE_NEWNET) != 0) return bad("setns: {}", std::strerror(errno));
    return good();
}

Verdict NetworkNamespace::run(const std::string& command) const {
    pid_t pid = fork();
    if (pid == 0) {
        if (!enter()) _exit(127);
        execl("/bin/sh", "sh", "-ec", command.c_str(), nullptr);
        _exit(127);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? good() : bad("failed: {}", command);
}

Verdict NetworkNamespace::connect(const NetworkNamespace& a, const NetworkNamespace& b) {
    Verdict cable = a.run(fmt::format("ip link add eth0 type veth peer name eth0 netns {}", b.holder()));
    if (!cable) return cable;
    for (const NetworkNamespace* end : {&a, &b})
        if (Verdict up = end->run("ip link set lo up; ip link set eth0 up"); !up) return up;
    return good();
}

}  // namespace ringccl::test
