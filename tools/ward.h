// All ranks of a communicator as their dumps show them, and words for several of them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rank_dump.h"

namespace ringccl::doctor {

struct Ward {
    int size = 1;
    std::map<int, RankDump> dumps;
    std::vector<int> missing;  // ranks without a dump

    // ringInvalidUsage: none, or not of one communicator. Of several dumps of one rank the newest counts; `notes` says so.
    static Result<Ward> of(std::vector<RankDump> dumps, std::vector<std::string>& notes);

    bool failed() const;  // somebody has
    // Whether anybody has been in an operation for so long that it is no coincidence.
    bool hangs() const;
    std::vector<int> waiting_for(int rank) const;
};

// "rank 3", "ranks 0, 1 and 3", "all ranks"; shortened if there are many.
std::string ranks_text(const std::vector<int>& ranks, int size);
std::string span_text(int64_t us);  // "12.3 s"

}  // namespace ringccl::doctor
