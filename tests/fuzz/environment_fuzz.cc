// Texts from the environment and the configuration that have a grammar: Slurm's list of nodes, RINGCCL_ROOT, the filter of
// interfaces, and numbers with suffixes.
#include "base/knobs.h"
#include "bootstrap/interfaces.h"
#include "bootstrap/launcher.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace ringccl;
    fuzz::Bytes bytes(data, size);
    const uint8_t which = bytes.byte();
    const std::string text(bytes.rest());
    switch (which % 4) {
        case 0:
            fuzz::must(first_host(text).size() <= text.size(), "the first host is part of the list");
            break;
        case 1: {
            std::string host;
            uint16_t port = 0;
            if (parse_root(text, host, port).ok()) fuzz::must(!host.empty() && port > 0, "a root has a host and a port");
            break;
        }
        case 2: {
            auto chosen = choose_interfaces({{"eth0", "10.0.0.1"},
                                             {"eth0", "fe80::1%eth0"},
                                             {"docker0", "172.17.0.1"},
                                             {"tun0", "fd00::1", true},
                                             {"lo", "127.0.0.1"},
                                             {"lo", "::1"}},
                                            text);
            if (chosen.ok()) fuzz::must(!chosen.value().empty() && chosen.value().size() <= 6, "a filter leaves something");
            break;
        }
        default: {
            Settings settings = settings_from_environment().value();
            for (const Knob& knob : knobs())
                if (set_knob(settings, knob, text).ok())
                    fuzz::must(set_knob(settings, knob, knob_value(settings, knob)).ok(),
                               "a value that was taken prints as one");
        }
    }
    return 0;
}
