#include "base/process.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <mutex>

namespace ringccl {
namespace {

// A word that is 0 again in every forked child; null if the kernel has no such memory.
std::atomic<pid_t>* word_wiped_on_fork() {
    const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return nullptr;
    if (madvise(page, bytes, MADV_WIPEONFORK) == 0) return static_cast<std::atomic<pid_t>*>(page);
    munmap(page, bytes);
    return nullptr;
}

}  // namespace

pid_t process_id() {
    static std::atomic<pid_t>* const known = word_wiped_on_fork();
    if (known == nullptr) return ::getpid();
    pid_t id = known->load(std::memory_order_relaxed);
    if (id == 0) known->store(id = ::getpid(), std::memory_order_relaxed);
    return id;
}

const std::string& process_token() {
    static std::mutex mutex;
    static pid_t owner = 0;
    static std::string token;
    std::lock_guard lock(mutex);
    if (owner != process_id()) {
        unsigned char random[16] = {};
        [[maybe_unused]] ssize_t got = getrandom(random, sizeof random, 0);
        token = fmt::format("{}:", process_id());
        for (unsigned char byte : random) token += fmt::format("{:02x}", byte);
        owner = process_id();
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
