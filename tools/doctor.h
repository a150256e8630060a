// Reads what all ranks of a communicator wrote down and says what went wrong, at which rank.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/status.h"
#include "rank_dump.h"

namespace ringccl::doctor {

struct Diagnosis {
    enum class Cause { none, divergence, failure, missing_dump, missing_call, stuck_link, wait, straggler };
    struct Row {
        int rank = 0;
        std::string last, in, waits_for, failure;  // "" or "no dump" where there is nothing to say
    };

    Cause cause = Cause::none;
    std::vector<int> ranks;  // at which it is: those that differ, are missing, are late; the two ends of a link
    std::string sentence;
    std::vector<std::string> notes;
    std::vector<Row> rows;
};

const char* cause_name(Diagnosis::Cause cause);

// ringInvalidUsage: no dumps, or not of one communicator.
Result<Diagnosis> diagnose(std::vector<RankDump> dumps);

// The sentence, the notes and the table, for people; the same for machines.
std::string to_text(const Diagnosis& diagnosis);
nlohmann::json to_json(const Diagnosis& diagnosis);

}  // namespace ringccl::doctor
