#include "holdings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/deadline.h"

namespace ringccl::test {

namespace fs = std::filesystem;

Holdings Holdings::now() {
    Holdings found;
    std::error_code gone;  // what ends while it is looked at
    for (const auto& entry : fs::directory_iterator("/proc/self/fd", gone)) {
        const std::string target = fs::read_symlink(entry, gone).string();
        if (!gone && target.find("/proc/") != 0) ++found.descriptors[target.substr(0, target.find('['))];
    }
    found.threads = static_cast<int>(std::distance(fs::directory_iterator("/proc/self/task", gone), fs::directory_iterator()));
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        found.memory_files += line.find("/memfd:") != line.npos || line.find("/dev/shm/") != line.npos;
    return found;
}

std::string Holdings::beyond(const Holdings& before) const {
    std::string more;
    for (const auto& [target, count] : descriptors) {
        auto known = before.descriptors.find(target);
        const int had = known == before.descriptors.end() ? 0 : known->second;
        if (count > had) more += fmt::format("{} more descriptors of {}; ", count - had, target);
    }
    if (threads > before.threads) more += fmt::format("{} more threads; ", threads - before.threads);
    if (memory_files > before.memory_files) more += fmt::format("{} more mapped memfds; ", memory_files - before.memory_files);
    return more;
}

std::string left_behind(const Holdings& before, int ms) {
    const Deadline deadline = Deadline::after(std::chrono::milliseconds(ms));
    for (;;) {
        std::string more = Holdings::now().beyond(before);
        if (more.empty() || deadline.passed()) return more;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

}  // namespace ringccl::test
