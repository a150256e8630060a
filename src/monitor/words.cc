#include "monitor/words.h"

#include <algorithm>
#include <limits>

namespace ringccl {
namespace {

using nlohmann::json;

constexpr size_t kMostFailure = 4000, kMostDoing = 300;

std::optional<uint64_t> natural(const json& value) {
    if (value.is_number_unsigned()) return value.get<uint64_t>();
    if (value.is_number_integer() && value.get<int64_t>() >= 0) return value.get<uint64_t>();
    return std::nullopt;
}

// [kind, type, op, count, root]
std::optional<Fingerprint> fingerprint(const json& list, uint64_t sequence) {
    if (!list.is_array() || list.size() != 5) return std::nullopt;
    uint64_t fields[5];
    const uint64_t most[5] = {static_cast<uint64_t>(Kind::recv), 255, static_cast<uint64_t>(Op::premul),
                              std::numeric_limits<uint64_t>::max(), std::numeric_limits<int32_t>::max()};
    for (size_t i = 0; i < 5; ++i) {
        auto field = natural(list[i]);
        if (!field || *field > most[i]) return std::nullopt;
        fields[i] = *field;
    }
    Fingerprint print;
    print.sequence = sequence;
    print.kind = static_cast<Kind>(fields[0]);
    print.type = static_cast<uint8_t>(fields[1]);
    print.op = static_cast<Op>(fields[2]);
    print.count = fields[3];
    print.root = static_cast<int32_t>(fields[4]);
    return print;
}

}  // namespace

std::optional<uint64_t> natural_in(const json& message, const char* key) {
    auto found = message.find(key);
    return found == message.end() ? std::nullopt : natural(*found);
}

int rank_in(const json& message, const char* key, size_t size) {
    auto number = natural_in(message, key);
    return number && *number < size ? static_cast<int>(*number) : -1;
}

std::string words_in(const json& message, const char* key, size_t most) {
    std::string text = text_in(message, key);
    if (text.size() > most) {
        text.resize(most - 3);
        text += "...";
    }
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    return text;
}

Status failure_in(const json& message) {
    Status status = status_in(message);
    if (status.ok()) return status;
    std::string text = words_in(message, "failure", kMostFailure);
    return {status.code(), text.empty() ? "it gave no reason" : std::move(text)};
}

json where_message(std::optional<uint64_t> sequence, const Whereabouts& where) {
    json message = {{"say", "where"}, {"begun", where.begun}, {"doing", where.doing}};
    if (sequence) message["sequence"] = *sequence;
    if (sequence && where.asked) {
        const Fingerprint& print = *where.asked;
        message["asked"] = {static_cast<int>(print.kind), print.type, static_cast<int>(print.op), print.count, print.root};
    }
    return message;
}

Whereabouts where_in(const json& message) {
    Whereabouts where;
    where.begun = natural_in(message, "begun").value_or(0);
    where.doing = words_in(message, "doing", kMostDoing);
    auto sequence = natural_in(message, "sequence");
    auto asked = message.find("asked");
    if (sequence && asked != message.end()) where.asked = fingerprint(*asked, *sequence);
    return where;
}

std::vector<int> peers_in(const json& message, size_t size) {
    std::vector<int> peers;
    auto found = message.find("peers");
    if (found == message.end() || !found->is_array()) return peers;
    std::vector<bool> known(size);
    for (const json& peer : *found) {
        auto number = natural(peer);
        if (!number || *number >= size || known[*number]) continue;
        known[*number] = true;
        peers.push_back(static_cast<int>(*number));
    }
    return peers;
}

}  // namespace ringccl
