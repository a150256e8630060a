// What ranks that have passed the challenge say to each other: a length (32 bits, big endian) and that many bytes of CBOR
// (RFC 8949). message_io.h sends and receives it.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ringccl {

constexpr size_t kMostMessageBytes = size_t{16} << 20;

// Ready to be sent, to many if need be.
using Frame = std::shared_ptr<const std::string>;
Frame framed(const nlohmann::json& message);

// From the CBOR alone. Depth is limited, because the parser recurses. ringRemoteError: it is no message.
Result<nlohmann::json> parse_message(std::string_view bytes);

// A member of a message; 0 or "" if it is not there or of another kind.
int64_t number_in(const nlohmann::json& message, const char* key);
std::string text_in(const nlohmann::json& message, const char* key);

// A failure as a message, and back. status_in returns ok for a message that is none.
nlohmann::json message_of(const Status& failure);
Status status_in(const nlohmann::json& message);

}  // namespace ringccl
