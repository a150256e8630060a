#include "rank_dump.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ringccl::doctor {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;

// "root" is missing in most operations, "waits_for" is null in most.
int number_or(const json& object, const char* key, int otherwise) {
    const auto at = object.find(key);
    return at == object.end() || at->is_null() ? otherwise : at->get<int>();
}

RecordedOperation operation(const json& from) {
    RecordedOperation made;
    from.at("sequence").get_to(made.sequence);
    from.at("count").get_to(made.count);
    from.at("kind").get_to(made.kind);
    from.at("type").get_to(made.type);
    from.at("op").get_to(made.op);
    from.at("algorithm").get_to(made.algorithm);
    from.at("begin_us").get_to(made.begin_us);
    if (!from.at("end_us").is_null()) made.end_us = from.at("end_us").get<int64_t>();
    if (!from.at("result").is_null()) from.at("result").get_to(made.result);
    made.root = number_or(from, "root", -1);
    made.peer = number_or(from, "peer", -1);
    made.waits_for = number_or(from, "waits_for", -1);
    return made;
}

RankDump dump(const json& from) {
    RankDump made;
    from.at("communicator").get_to(made.communicator);
    from.at("host").get_to(made.host);
    from.at("rank").get_to(made.rank);
    from.at("size").get_to(made.size);
    from.at("process").get_to(made.process);
    from.at("time_us").get_to(made.time_us);
    from.at("begun").get_to(made.begun);
    from.at("completed").get_to(made.completed);
    if (const json& why = from.at("failure"); !why.is_null())
        made.failure = {why.at("code").get<int>(), why.at("name").get<std::string>(), why.at("text").get<std::string>()};
    for (const json& each : from.at("operations")) made.operations.push_back(operation(each));
    for (const json& each : from.at("peers"))
        made.peers[each.at("rank").get<int>()] = {each.at("transport").get<std::string>(), each.at("offered").get<uint64_t>(),
                                                  each.at("received").get<uint64_t>()};
    return made;
}

}  // namespace

std::string RecordedOperation::name() const {
    if (!pair()) return fmt::format("{} (operation {})", kind, sequence);
    return fmt::format("{} (message {}) {} rank {}", kind, sequence, kind == "send" ? "to" : "from", peer);
}

std::string RecordedOperation::description() const {
    if (kind == "barrier") return kind;
    std::string text = fmt::format("{} of {} {}", kind, count, type);
    if (op != "none") text += fmt::format(" ({})", op);
    if (root >= 0) text += fmt::format(" with root {}", root);
    return text;
}

const RecordedOperation* RankDump::current() const {
    const auto at = std::find_if(operations.begin(), operations.end(), [](const auto& each) { return !each.finished(); });
    return at == operations.end() ? nullptr : &*at;
}

const RecordedOperation* RankDump::last_finished() const {
    const auto at = std::find_if(operations.rbegin(), operations.rend(), [](const auto& each) { return each.finished(); });
    return at == operations.rend() ? nullptr : &*at;
}

const RecordedOperation* RankDump::collective(uint64_t sequence) const {
    const auto at = std::find_if(operations.rbegin(), operations.rend(),
                                 [&](const auto& each) { return !each.pair() && each.sequence == sequence; });
    return at == operations.rend() ? nullptr : &*at;
}

Result<RankDump> read_dump(const std::string& file, const json& content) {
    const auto bad = [&](const std::string& why) {
        return failure(ringInvalidArgument, "{} is no dump of ringccl: {}", file, why);
    };
    try {
        if (!content.is_object() || !content.contains("format")) return bad("it has no \"format\"");
        if (content.at("format") != kFormat)
            return failure(ringInvalidArgument,
                           "{} has dump format {}, but this program knows only {}; use that of the library", file,
                           content.at("format").dump(), kFormat);
        RankDump made = dump(content);
        if (made.size < 1 || made.rank < 0 || made.rank >= made.size)
            return bad(fmt::format("rank {} of {}", made.rank, made.size));
        made.file = file;
        return made;
    } catch (const json::exception& error) {
        return bad(error.what());
    }
}

}  // namespace ringccl::doctor
