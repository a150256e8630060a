// What ranks say on their lifelines, and when: the input is a story of messages, ends and time that passes.
#include <nlohmann/json.hpp>

#include "bootstrap/message.h"
#include "fuzz/fuzz.h"
#include "monitor/hub.h"

namespace ringccl::fuzz {
namespace {

constexpr int kRanks = 5;

class Listener final : public Hub::Lines {
public:
    void say(int rank, const nlohmann::json& message) override {
        must(rank >= 0 && rank < kRanks, "the hub speaks to ranks");
        must(parse_message(framed(message)->substr(4)).ok(), "what the hub says can be sent");
        if (text_in(message, "say") == "verdict") {
            must(!status_in(message).ok(), "a verdict is a failure");
            must(text_in(message, "failure").size() < 16384, "a verdict is one sentence");
            must(verdicts_[rank]++ == 0, "a rank gets one verdict");
        }
    }
    void hang_up(int rank) override { must(rank >= 0 && rank < kRanks, "the hub hangs up on ranks"); }

private:
    int verdicts_[kRanks] = {};
};

}  // namespace
}  // namespace ringccl::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace ringccl;
    using namespace ringccl::fuzz;
    Bytes bytes(data, size);
    Listener listener;
    auto now = Hub::Clock::time_point() + std::chrono::hours(1);
    const uint8_t form = bytes.byte();
    std::vector<std::string> names;
    for (int rank = 0; rank < kRanks; ++rank) names.push_back(fmt::format("rank {} (process {} on host)", rank, 100 + rank));
    Hub hub(names, std::chrono::milliseconds(form & 1 ? 1000 : 0), listener, now);
    for (int rank = 0; rank < kRanks; ++rank)
        if (!(form & (4 << rank))) hub.joined(rank, rank == 0 && (form & 2), now);
    while (!bytes.empty()) {
        const uint8_t what = bytes.byte();
        const int rank = what % 8 - 1;  // also those that there are not
        switch (what >> 3 & 7) {
            case 0:
                hub.joined(rank, false, now);
                break;
            case 1:
                hub.ended(rank, std::string(bytes.take(bytes.byte() % 32)), now);
                break;
            case 2:
            case 3:
                now += std::chrono::milliseconds(bytes.byte() * (what & 8 ? 16 : 1));
                must(hub.tick(now) >= now, "the hub is called again in the future");
                break;
            default: {
                auto message = parse_message(bytes.take(bytes.byte()));
                if (message.ok()) hub.hear(rank, message.value(), now);
            }
        }
    }
    if (form & 0x80) hub.farewell(now);
    return 0;
}
