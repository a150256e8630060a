// The shared secret of one communicator and what is derived from it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ringccl {

using Secret = std::array<uint8_t, 32>;
using Digest = std::array<uint8_t, 32>;  // HMAC-SHA256 (RFC 2104, FIPS 198-1)

// Fresh random bytes from the system.
Status fill_random(std::span<uint8_t> bytes);

Digest keyed_digest(const Secret& secret, std::string_view message);

// A secret for another purpose or another communicator, e.g. derive(secret, "courier").
Secret derive(const Secret& secret, std::string_view purpose);

// Comparison whose time does not depend on where the first difference is.
bool same_digest(const Digest& a, const Digest& b);

// The calling thread is about to end and computes no more digests. OpenSSL then has nothing of it left to free, which it would
// otherwise do while the thread dies, perhaps after OpenSSL itself has been taken down at the end of the process.
void end_digests();

}  // namespace ringccl
