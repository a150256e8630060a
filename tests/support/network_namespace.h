// A network namespace: another host, as far as addresses and routes go. It is held by a process that sleeps in it, so the
// kernel removes it, with all its interfaces, when the test ends in whatever way.
#pragma once

#include <sys/types.h>

#include <string>

#include "support/member.h"

namespace ringccl::test {

class NetworkNamespace {
public:
    // failed() says whether the kernel refused, and why.
    NetworkNamespace();
    ~NetworkNamespace();
    NetworkNamespace(const NetworkNamespace&) = delete;
    NetworkNamespace& operator=(const NetworkNamespace&) = delete;

    const std::string& failed() const { return failed_; }
    pid_t holder() const { return holder_; }

    // Moves the calling process into the namespace.
    Verdict enter() const;
    // Runs a shell command inside.
    Verdict run(const std::string& command) const;

    // Joins two namespaces by a cable: an interface eth0 in each.
    static Verdict connect(const NetworkNamespace& a, const NetworkNamespace& b);

private:
    pid_t holder_ = -1;
    std::string failed_;
};

}  // namespace ringccl::test
