// The library's log: lines on stderr with time, process and rank, from RINGCCL_LOG's level up. Silent by default but for
// warnings.
#pragma once

#include <spdlog/spdlog.h>

#include <memory>

namespace ringccl {

// One logger for the process. Levels follow RINGCCL_LOG, read once: off, error, warn (default), info, debug.
spdlog::logger& log();

}  // namespace ringccl
