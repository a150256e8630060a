// The settings that rank 0 decides for all, as another rank reads them.
#include "base/knobs.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace ringccl;
    static const Settings defaults = settings_from_environment().value();
    Settings settings = defaults;
    Status adopted = adopt_shared_settings(settings, {reinterpret_cast<const char*>(data), size});
    if (!adopted.ok()) {
        fuzz::must(shared_settings(settings) == shared_settings(defaults), "a refused text changes nothing");
        return 0;
    }
    for (const Knob& knob : knobs()) {
        if (!knob.number) continue;
        int64_t value = settings.*knob.number;
        fuzz::must(value >= knob.least && value <= knob.most, "what was adopted is in range");
        if (!knob.shared) fuzz::must(value == defaults.*knob.number, "only shared settings change");
    }
    Settings again = defaults;
    fuzz::must(adopt_shared_settings(again, shared_settings(settings)).ok(), "what was adopted can be passed on");
    return 0;
}
