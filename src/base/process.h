// Which process this is.
#pragma once

#include <sys/types.h>

#include <string>

namespace ringccl {

// getpid() without its system call, for whoever asks at every call whether this is a forked child.
pid_t process_id();

// Random, the same for all ranks of one process, different in a forked child.
const std::string& process_token();

// The host as people name it.
std::string host_name();

// The host as the kernel names it: the boot id. Empty if it cannot be read.
std::string boot_id();

}  // namespace ringccl
