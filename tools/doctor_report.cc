// How a diagnosis is printed.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor.h"

namespace ringccl::doctor {

std::string to_text(const Diagnosis& diagnosis) {
    std::string text = diagnosis.sentence + "\n";
    for (const std::string& note : diagnosis.notes) text += "  " + note + "\n";
    using Row = Diagnosis::Row;
    const auto width = [&](std::string Row::*column, const char* title) {
        size_t most = std::string(title).size();
        for (const Row& row : diagnosis.rows) most = std::max(most, (row.*column).size());
        return most;
    };
    const char *last = "last completed", *in = "in", *waits = "waits for";
    const size_t last_width = width(&Row::last, last), in_width = width(&Row::in, in);
    const auto line = [&](const auto& rank, const auto& a, const auto& b, const auto& c, const auto& d) {
        text += fmt::format("{:>5}  {:{}}  {:{}}  {:9}  {}\n", rank, a, last_width, b, in_width, c, d);
        text.erase(text.find_last_not_of(" \n") + 1);
        text += '\n';
    };
    text += '\n';
    line("rank", last, in, waits, "failure");
    for (const Row& row : diagnosis.rows) line(row.rank, row.last, row.in, row.waits_for, row.failure);
    return text;
}

nlohmann::json to_json(const Diagnosis& diagnosis) {
    nlohmann::json all = {{"cause", cause_name(diagnosis.cause)},
                          {"ranks", diagnosis.ranks},
                          {"sentence", diagnosis.sentence},
                          {"notes", diagnosis.notes},
                          {"table", nlohmann::json::array()}};
    for (const auto& row : diagnosis.rows)
        all["table"].push_back({{"rank", row.rank},
                                {"last_completed", row.last},
                                {"in", row.in},
                                {"waits_for", row.waits_for},
                                {"failure", row.failure}});
    return all;
}

}  // namespace ringccl::doctor
