#include "trace/log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>

#include "base/knobs.h"

namespace ringccl {
namespace {

// A bad level must not keep the library from speaking of it: it counts as the default, and making a communicator refuses it.
spdlog::level::level_enum level_from_environment() {
    Settings settings;
    for (const Knob& knob : knobs()) {
        if (knob.text != &Settings::log) continue;
        const char* value = std::getenv(knob.name);
        if (!value || !set_knob(settings, knob, value).ok()) settings.log = knob.fallback;
    }
    return spdlog::level::from_str(settings.log);
}

}  // namespace

// Never freed, and not in spdlog's registry: it can be used while the process's static objects are destroyed, and an
// application that uses spdlog itself does not meet it.
spdlog::logger& log() {
    static spdlog::logger* const logger = [] {
        auto* made = new spdlog::logger("ringccl", std::make_shared<spdlog::sinks::stderr_sink_mt>());
        made->set_pattern("%Y-%m-%d %H:%M:%S.%e %n[%P] %l: %v");
        made->set_level(level_from_environment());
        made->flush_on(spdlog::level::trace);
        return made;
    }();
    return *logger;
}

}  // namespace ringccl
