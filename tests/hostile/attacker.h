// Somebody on the network, or on the same host, who has no business with a job: finds its ports and unix sockets as anybody can
// find them, and does there what port scanners, browsers, other jobs and forgers do.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "bootstrap/secret.h"
#include "crew.h"

namespace ringccl::test {

// Each comes from an address of its own, 127.0.0.10 and up, so that the log tells them apart.
enum class Attack { close, seven_bytes, http, noise, silence, replay };
inline constexpr int kAttacks = 6;
std::string source_of(Attack attack);

// TCP ports on which a process listens, and names of its abstract unix sockets that begin with "ringccl-".
std::vector<uint16_t> ports_of(pid_t process);
std::vector<std::string> couriers_of(pid_t process);

// Connects to 127.0.0.1:port from the given address of this host. Empty if that fails; reads and writes end after 200 ms.
Fd knock(uint16_t port, const std::string& from = "127.0.0.1");
std::string read_bytes(const Fd& fd, size_t bytes);
bool write_bytes(const Fd& fd, std::string_view bytes);

// The dialer's half of the challenge (docs/wire.md), made for the greeting nonce `a`.
struct Introduction {
    uint32_t purpose = 1, from = 1, to = ~0u, lane = 0, index = 0;
};
std::string claim(const Secret& key, std::string_view a, const Introduction& hello);

// Goes from port to port of the crew's ranks, attacking, until all ranks have ended. Counts what it did in crew->attacks.
struct Campaign {
    int pause_us = 500;    // of each of its threads
    bool letters = false;  // also garbage and forged letters to the couriers
};
Verdict attack_all(const Crew& crew, int ranks, const Campaign& campaign);

// One datagram to an abstract unix socket, with so many descriptors. False: its queue is full, or nobody is there.
bool send_letter(const std::string& to, std::string_view bytes, int descriptors);

}  // namespace ringccl::test
