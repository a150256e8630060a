// The addresses at which this host can be reached, filtered by RINGCCL_INTERFACE and put into order of preference.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace ringccl {

// One address of one network interface.
struct Interface {
    std::string name;     // "eth0"
    std::string address;  // numeric, with %scope for IPv6 link-local
    bool tunnel = false;  // a point-to-point link
};

// All addresses of interfaces that are up, in the kernel's order. ringSystemError: the kernel does not say.
Result<std::vector<Interface>> host_interfaces();

// Those that `filter` allows, best first: global scope, private, bridges and tunnels, link-local, loopback. Loopback stays
// whatever the filter names, for ranks of one host, unless the filter excludes it by name.
//   filter = ["^"]["="] item {"," item}      item = interface name, or its beginning | network such as 10.0.0.0/8
//   "^": all but these. "=": names must match whole. "": everything.
// ringInvalidUsage: the filter cannot be read, or leaves nothing; the text lists what there is.
Result<std::vector<Interface>> choose_interfaces(std::vector<Interface> all, const std::string& filter);

// The allowed address from which to dial `target`, or "" if the kernel may choose: when nothing was filtered, or the target is
// on this host's loopback. An address of the target's family and scope; one in the same network is not looked for, because
// the routing table decides that better whenever there is no filter.
std::string source_for(const std::string& target, const std::vector<Interface>& allowed, const std::string& filter);

}  // namespace ringccl
