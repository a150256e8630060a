// Takes system calls away from the calling process, as containers do.
#pragma once

#include "support/member.h"

namespace ringccl::test {

// From now on, and in children, the system call `number` fails with `error`. Bad: the kernel has no filters.
Verdict forbid(int number, int error);

}  // namespace ringccl::test
