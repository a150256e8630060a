#include "base/process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ringccl {
namespace {

// Whether a forked child, whose own child may fork again, knows who it is.
bool right_in_child(int generations) {
    if (process_id() != getpid()) return false;
    if (generations == 0) return true;
    const std::string token = process_token();
    const pid_t child = fork();
    if (child == 0) _exit(right_in_child(generations - 1) && process_token() != token ? 0 : 1);
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 && process_id() == getpid();
}

TEST(Process, IdIsRightInEveryGeneration) {
    EXPECT_TRUE(right_in_child(3));
}

}  // namespace
}  // namespace ringccl
