// The table of environment variables, for the terminal and for docs/tuning.md.
#pragma once

#include <string>

#include "base/knobs.h"

namespace ringccl {

// Every knob, and every variable that places a process in its job, with its value, default, range and text. Those that differ from their default are marked.
std::string knob_list(const Settings& settings);

// The same without values, as a Markdown table.
std::string knob_markdown();

}  // namespace ringccl
