// CPU limits from made-up control group trees.
#include "base/cpus.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace ringccl {
namespace {

class Cpus : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "cpus.XXXXXX";
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        root_ = pattern;
    }
    void TearDown() override { std::filesystem::remove_all(root_); }

    void write(const std::string& path, const std::string& text) {
        std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
        std::ofstream(root_ + path) << text;
    }
    double quota() { return cpu_limits(root_).quota; }

    std::string root_;
};

TEST_F(Cpus, NothingToReadMeansNoQuota) {
    EXPECT_TRUE(std::isinf(quota()));
}

TEST_F(Cpus, Version2TakesTheTightestGroupOnTheWayUp) {
    write("/proc/self/cgroup", "0::/pod/container\n");
    write("/sys/fs/cgroup/pod/container/cpu.max", "max 100000\n");
    EXPECT_TRUE(std::isinf(quota()));
    write("/sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
    EXPECT_DOUBLE_EQ(quota(), 1.5);
    write("/sys/fs/cgroup/cpu.max", "50000 100000\n");
    EXPECT_DOUBLE_EQ(quota(), 0.5);
}

TEST_F(Cpus, Version1) {
    write("/proc/self/cgroup", "9:memory:/m\n4:cpu,cpuacct:/docker/abc\n0::/\n");
    write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1\n");
    write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
    EXPECT_TRUE(std::isinf(quota()));
    write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "250000\n");
    EXPECT_DOUBLE_EQ(quota(), 2.5);
}

// A container sees its own group as the mount's root, while the path in /proc is the host's.
TEST_F(Cpus, PathOfTheHostIsNotNeeded) {
    write("/proc/self/cgroup", "1:cpu:/docker/of/the/host\n");
    write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
    write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    EXPECT_DOUBLE_EQ(quota(), 3.0);
}

TEST_F(Cpus, JunkDoesNotLimit) {
    write("/proc/self/cgroup", "junk\n0::/\n::::\n");
    write("/sys/fs/cgroup/cpu.max", "-5 0\n");
    EXPECT_TRUE(std::isinf(quota()));
}

TEST(CpuLimits, UsableRoundsTheQuotaUpAndIsNeverZero) {
    EXPECT_EQ((CpuLimits{8, 1.5}.usable()), 2);
    EXPECT_EQ((CpuLimits{8, 0.01}.usable()), 1);
    EXPECT_EQ((CpuLimits{4, 16.0}.usable()), 4);
    EXPECT_EQ((CpuLimits{4}.usable()), 4);
}

TEST(CpuLimits, FollowsAffinity) {
    cpu_set_t before, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
        if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(cpu_limits().affinity, 1);
    EXPECT_EQ(usable_cpus(), 1);
    ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
    EXPECT_EQ(cpu_limits().affinity, CPU_COUNT(&before));
}

}  // namespace
}  // namespace ringccl
