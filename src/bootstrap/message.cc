#include "bootstrap/message.h"

namespace ringccl {
namespace {

using nlohmann::json;

constexpr size_t kDeepest = 16;

// Builds the value like the library's own parser, but stops at kDeepest: nested arrays cost one byte each and a stack frame.
class ShallowParser : public nlohmann::detail::json_sax_dom_parser<json> {
public:
    explicit ShallowParser(json& value) : json_sax_dom_parser(value, false) {}

    bool start_object(size_t members) { return enter() && json_sax_dom_parser::start_object(members); }
    bool start_array(size_t elements) { return enter() && json_sax_dom_parser::start_array(elements); }
    bool end_object() { return --depth_, json_sax_dom_parser::end_object(); }
    bool end_array() { return --depth_, json_sax_dom_parser::end_array(); }

private:
    bool enter() { return ++depth_ <= kDeepest; }
    size_t depth_ = 0;
};

}  // namespace

Frame framed(const json& message) {
    std::string bytes(4, '\0');
    json::to_cbor(message, bytes);
    size_t length = bytes.size() - 4;
    for (int i = 0; i < 4; ++i) bytes[i] = static_cast<char>(length >> (24 - 8 * i));
    return std::make_shared<const std::string>(std::move(bytes));
}

Result<json> parse_message(std::string_view bytes) {
    json message;
    try {
        ShallowParser parser(message);
        if (json::sax_parse(bytes.begin(), bytes.end(), &parser, json::input_format_t::cbor) && message.is_object())
            return message;
    } catch (const std::exception&) {
        // The library throws on lengths beyond memory even where it is asked not to.
    }
    return failure(ringRemoteError, "sent {} bytes that are no message", bytes.size());
}

int64_t number_in(const json& message, const char* key) {
    auto found = message.find(key);
    return found != message.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

std::string text_in(const json& message, const char* key) {
    auto found = message.find(key);
    return found != message.end() && found->is_string() ? found->get<std::string>() : std::string();
}

json message_of(const Status& failure) {
    return {{"code", static_cast<int>(failure.code())}, {"failure", failure.text()}};
}

Status status_in(const json& message) {
    if (!message.contains("code")) return {};
    int64_t code = number_in(message, "code");
    bool known = code > ringSuccess && code <= ringMismatch && code != ringInProgress;
    return {known ? static_cast<ringResult_t>(code) : ringRemoteError, text_in(message, "failure")};
}

}  // namespace ringccl
