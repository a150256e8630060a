// What is inside a ringUniqueId: the secret, and where the meeting point listens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "bootstrap/door.h"
#include "bootstrap/secret.h"

namespace ringccl {

struct Invitation {
    Secret secret{};
    uint16_t port = 0;
    uint8_t ports = 1;                   // how many ports from `port` on may be the one
    uint8_t call = 0;                    // which of the meetings with this secret
    std::vector<std::string> addresses;  // numeric, best first
};

// Addresses that do not fit are left out from the end, but a loopback address is kept; IPv6 link-local ones are left out
// always, because their scope means nothing on another host.
ringUniqueId pack(const Invitation& invitation);

// ringInvalidArgument: the id is damaged, was never made, or is from a version with another layout.
Result<Invitation> unpack(const ringUniqueId& id);

// Every address with every port, in the order in which they are to be tried.
std::vector<Endpoint> endpoints_of(const Invitation& invitation);

}  // namespace ringccl
