// What rank 0 prints: the table, the closing lines, a summary in plain words, and the same as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "perf/bench.h"

namespace ringccl::perf {

class Report {
public:
    Report(const Collective& collective, const Options& options, int world);

    // `ranks`: a line of words on each.
    void header(const std::vector<std::string>& ranks);
    void row(const Case& row, const std::optional<Measurement>& out_of_place, const std::optional<Measurement>& in_place);
    void footer() const;

    bool right() const { return wrong_ == 0; }
    // False: the file cannot be written; errno says why.
    bool write_json(const std::string& file) const;

private:
    // Extremes that the summary speaks of.
    struct Mark {
        double value = 0;
        Case row;
    };

    const Collective& collective_;
    const Options& options_;
    int world_;
    uint64_t wrong_ = 0;
    double bandwidth_sum_ = 0;
    int measurements_ = 0;
    std::optional<Mark> widest_, smallest_;
    double cpu_per_gigabyte_ = 0, sent_share_ = 0;  // of the largest message
    size_t largest_ = 0;
    nlohmann::json rows_ = nlohmann::json::array();
};

}  // namespace ringccl::perf
