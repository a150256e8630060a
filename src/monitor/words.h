// The words on a lifeline, made and read: CBOR maps (bootstrap/message.h) with the kind of message under "say"; docs/wire.md
// lists them. Whoever sends them knows the secret, but may run another version or be out of its mind: everything is checked.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bootstrap/message.h"
#include "monitor/lifeline.h"

namespace ringccl {

// A number that is there and not negative.
std::optional<uint64_t> natural_in(const nlohmann::json& message, const char* key);
// A rank of a world of `size`, or -1.
int rank_in(const nlohmann::json& message, const char* key, size_t size);
// A text for people: at most `most` bytes, control characters replaced.
std::string words_in(const nlohmann::json& message, const char* key, size_t most);
// `code` and `failure`; ok if there is no failure in the message.
Status failure_in(const nlohmann::json& message);

nlohmann::json where_message(std::optional<uint64_t> sequence, const Whereabouts& where);
// The answer to a question about `sequence`. A fingerprint that makes no sense is left out.
Whereabouts where_in(const nlohmann::json& message);

// `peers` of a late message: ranks of a world of `size`, each once.
std::vector<int> peers_in(const nlohmann::json& message, size_t size);

}  // namespace ringccl
