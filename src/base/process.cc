#include "base/process.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <fstream>
#include <mutex>

namespace ringccl {

const std::string& process_token() {
    static std::mutex mutex;
    static pid_t owner = 0;
    static std::string token;
    std::lock_guard lock(mutex);
    if (owner != getpid()) {
        unsigned char random[16] = {};
        [[maybe_unused]] ssize_t got = getrandom(random, sizeof random, 0);
        token = fmt::format("{}:", getpid());
        for (unsigned char byte : random) token += fmt::format("{:02x}", byte);
        owner = getpid();
    }
    return token;
}

std::string host_name() {
    char name[256] = {};
    return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::string boot_id() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    std::getline(file, id);
    return id;
}

}  // namespace ringccl
