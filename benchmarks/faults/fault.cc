#include "faults/fault.h"

#include <algorithm>

namespace ringccl::faults {

const std::vector<Fault>& all_faults() {
    static const std::vector<Fault> faults = {
        {"nothing", "no fault", Deed::nothing, Work::mix, ringSuccess},
        {"kill", "killed (SIGKILL) in or between allReduces", Deed::kill, Work::mix, ringRemoteError},
        {"kill-pairs", "killed; pairs of ranks send and receive", Deed::kill, Work::pairs, ringRemoteError},
        {"kill-group", "killed; the others wait in a group", Deed::kill, Work::group, ringRemoteError, true},
        {"kill-stream", "killed; the others wait for a stream", Deed::kill, Work::stream, ringRemoteError, true},
        {"exit", "calls exit() without ringCommDestroy", Deed::exit, Work::mix, ringRemoteError},
        {"stop", "stopped (SIGSTOP); RINGCCL_HEARTBEAT_MS=1000", Deed::stop, Work::mix, ringRemoteError, false, 10'000, "1000"},
        {"abort", "ringCommAbort in a second thread", Deed::abort, Work::mix, ringRemoteError},
        {"destroy", "ringCommDestroy while the others call on", Deed::destroy, Work::mix, ringRemoteError},
        {"count", "one element more than the others", Deed::other_count, Work::mix, ringMismatch},
        {"type", "ringInt32 where the others say ringFloat32", Deed::other_type, Work::mix, ringMismatch},
        {"collective", "ringBroadcast where the others call ringAllReduce", Deed::other_collective, Work::mix, ringMismatch},
        {"absent", "does not come to the call; timeoutMs = 1000", Deed::stay_away, Work::mix, ringTimeout, false, 1000},
    };
    return faults;
}

const Fault* find_fault(std::string_view name) {
    const auto& faults = all_faults();
    auto found = std::ranges::find_if(faults, [&](const Fault& fault) { return name == fault.name; });
    return found == faults.end() ? nullptr : &*found;
}

}  // namespace ringccl::faults
