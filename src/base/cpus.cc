#include "base/cpus.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ringccl {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// The mask grows with the machine: sched_getaffinity refuses one that is smaller than the kernel's.
int affinity_count() {
    for (int cpus = CPU_SETSIZE; cpus <= 64 * CPU_SETSIZE; cpus *= 2) {
        cpu_set_t* mask = CPU_ALLOC(cpus);
        if (!mask) break;
        size_t bytes = CPU_ALLOC_SIZE(cpus);
        int failed = sched_getaffinity(0, bytes, mask) == 0 ? 0 : errno;
        int count = failed ? 0 : CPU_COUNT_S(bytes, mask);
        CPU_FREE(mask);
        if (count > 0) return count;
        if (failed != EINVAL) break;
    }
    return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

// "100000 50000" or "max 100000": what version 2 keeps in cpu.max. A quota of -1 is version 1's word for none.
double quota_of(std::istream& text) {
    double quota = 0, period = 0;
    if (!(text >> quota >> period) || quota <= 0 || period <= 0) return kUnlimited;
    return quota / period;
}

double quota_in(const std::filesystem::path& group) {
    std::ifstream unified(group / "cpu.max");
    if (unified) return quota_of(unified);
    std::stringstream both;
    both << std::ifstream(group / "cpu.cfs_quota_us").rdbuf() << ' ' << std::ifstream(group / "cpu.cfs_period_us").rdbuf();
    return quota_of(both);
}

// A group is limited by each group above it too. Inside a container the path may name groups that only the host sees; those
// cannot be read, and the walk ends at the mount, which is then the container's own group.
double quota_above(const std::filesystem::path& mount, std::string path) {
    double quota = kUnlimited;
    for (;;) {
        quota = std::min(quota, quota_in(mount / std::filesystem::path(path).relative_path()));
        size_t slash = path.rfind('/');
        if (path.empty() || slash == path.npos) return quota;
        path.resize(slash);
    }
}

double group_quota(const std::string& root) {
    double quota = kUnlimited;
    std::ifstream membership(root + "/proc/self/cgroup");
    // "0::/path" is version 2; "4:cpu,cpuacct:/path" a version 1 hierarchy, mounted under its controllers' names.
    for (std::string line; std::getline(membership, line);) {
        size_t first = line.find(':'), second = line.find(':', first + 1);
        if (first == line.npos || second == line.npos) continue;
        std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
        if (controllers.empty()) {
            quota = std::min(
                {quota, quota_above(root + "/sys/fs/cgroup", path), quota_above(root + "/sys/fs/cgroup/unified", path)});
        } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
            quota = std::min({quota, quota_above(root + "/sys/fs/cgroup/" + controllers, path),
                              quota_above(root + "/sys/fs/cgroup/cpu", path)});
        }
    }
    return quota;
}

}  // namespace

int CpuLimits::usable() const {
    return static_cast<int>(std::max(1.0, std::min<double>(affinity, std::ceil(quota))));
}

CpuLimits cpu_limits(const std::string& root) {
    return {affinity_count(), group_quota(root)};
}

int usable_cpus() {
    return cpu_limits().usable();
}

size_t last_level_cache() {
    for (int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
        if (const long bytes = ::sysconf(level); bytes > 0) return static_cast<size_t>(bytes);
    return size_t{32} << 20;
}

}  // namespace ringccl
