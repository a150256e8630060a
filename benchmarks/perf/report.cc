#include "perf/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace ringccl::perf {
namespace {

// As wide as the number of digits that matter allows, the way nccl-tests prints times and bandwidths.
std::string microseconds(double seconds) {
    double us = seconds * 1e6;
    return fmt::format("{:.{}f}", us, us >= 100000 ? 0 : us >= 1000 ? 1 : 2);
}

std::string size_text(size_t bytes) {
    const char* const units[] = {"B", "KiB", "MiB", "GiB"};
    size_t unit = 0;
    while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) bytes /= 1024, ++unit;
    return fmt::format("{} {}", bytes, units[unit]);
}

// time, algbw, busbw, #wrong.
std::string columns(const std::optional<Measurement>& measured) {
    if (!measured) return fmt::format("{:>9} {:>7} {:>7} {:>7}", "N/A", "N/A", "N/A", "N/A");
    std::string wrong = measured->wrong ? fmt::to_string(*measured->wrong) : "N/A";
    return fmt::format("{:>9} {:>7.2f} {:>7.2f} {:>7}", microseconds(measured->seconds), measured->algorithm_bandwidth,
                       measured->bus_bandwidth, wrong);
}

std::string latency_columns(const Latency& latency) {
    return fmt::format(" {:>9} {:>9} {:>9}", microseconds(latency.p50), microseconds(latency.p99), microseconds(latency.most));
}

double cpu_per_gigabyte(const Case& row, const Measurement& measured) {
    return row.bytes ? measured.cpu_seconds / (static_cast<double>(row.bytes) / 1e9) : 0;
}

const char* memory_of(const Options& options) {
    return options.cuda ? "cuda" : options.ring_memory ? "ring" : "malloc";
}

nlohmann::json json_of(const Measurement& measured, bool latency) {
    nlohmann::json json = {{"time_us", measured.seconds * 1e6},
                           {"algbw_gb_per_s", measured.algorithm_bandwidth},
                           {"busbw_gb_per_s", measured.bus_bandwidth},
                           {"cpu_s_per_call", measured.cpu_seconds},
                           {"sent_bytes_per_call", measured.sent_bytes}};
    json["wrong"] = measured.wrong ? nlohmann::json(*measured.wrong) : nlohmann::json(nullptr);
    if (latency) {
        json["p50_us"] = measured.latency.p50 * 1e6;
        json["p99_us"] = measured.latency.p99 * 1e6;
        json["max_us"] = measured.latency.most * 1e6;
    }
    return json;
}

}  // namespace

Report::Report(const Collective& collective, const Options& options, int world)
    : collective_(collective), options_(options), world_(world) {}

void Report::header(const std::vector<std::string>& ranks) {
    auto wish = [](const std::string& word) { return word.empty() ? "as the environment says" : word; };
    fmt::print("# ringccl {}.{}.{} {}: {} rank{}, {} calls measured after {} of warm-up\n", RINGCCL_MAJOR, RINGCCL_MINOR,
               RINGCCL_PATCH, collective_.program, world_, world_ == 1 ? "" : "s", options_.iterations, options_.warmup);
    fmt::print("# transport {}, algorithm {}, memory {}\n#\n", wish(options_.transport), wish(options_.algorithm),
               options_.cuda ? "on CUDA devices" : memory_of(options_));
    for (int r = 0; r < world_; ++r) fmt::print("#  Rank {:>3} {}\n", r, ranks[r]);

    std::string latency[3];
    if (options_.latency) {
        latency[0] = fmt::format(" {:^29}", "latency out-of-place");
        latency[1] = fmt::format(" {:>9} {:>9} {:>9}", "p50", "p99", "max");
        latency[2] = fmt::format(" {:>9} {:>9} {:>9}", "(us)", "(us)", "(us)");
    }
    fmt::print("#\n# {:54}{:^33} {:^33}{} {:^31}\n", "", "out-of-place", "in-place", latency[0], "cost");
    fmt::print("# {:>10} {:>12} {:>8} {:>7} {:>6}     {:>9} {:>7} {:>7} {:>7} {:>9} {:>7} {:>7} {:>7}{} {:>8} {:>11} {:>11}\n",
               "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong",
               latency[1], "cpu", "sent/rank", "ideal");
    fmt::print("# {:>10} {:>12} {:>8} {:>7} {:>6}     {:>9} {:>7} {:>7} {:>7} {:>9} {:>7} {:>7} {:>7}{} {:>8} {:>11} {:>11}\n",
               "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "", latency[2],
               "(s/GB)", "(B)", "(B)");
    std::fflush(stdout);
}

void Report::row(const Case& row, const std::optional<Measurement>& out_of_place, const std::optional<Measurement>& in_place) {
    int root = collective_.rooted ? row.root : -1;
    double ideal = static_cast<double>(row.bytes) * collective_.sent_factor(world_);
    fmt::print("{:>12} {:>12} {:>8} {:>7} {:>6}     {} {}{} {:>8.3f} {:>11.0f} {:>11.0f}\n", row.bytes, row.count,
               row.type.name, row.operation.name, root, columns(out_of_place), columns(in_place),
               options_.latency ? latency_columns(out_of_place->latency) : "", cpu_per_gigabyte(row, *out_of_place),
               out_of_place->sent_bytes, ideal);
    std::fflush(stdout);

    nlohmann::json json = {{"size", row.bytes},           {"count", row.count}, {"type", row.type.name},
                           {"redop", row.operation.name}, {"root", root},       {"ideal_sent_bytes", ideal}};
    for (const auto* measured : {&out_of_place, &in_place}) {
        if (!*measured) continue;
        json[measured == &in_place ? "in_place" : "out_of_place"] = json_of(**measured, options_.latency);
        wrong_ += (*measured)->wrong.value_or(0);
        bandwidth_sum_ += (*measured)->bus_bandwidth;
        ++measurements_;
        if (!widest_ || (*measured)->bus_bandwidth > widest_->value) widest_ = Mark{(*measured)->bus_bandwidth, row};
        bool smaller = smallest_ && (row.bytes < smallest_->row.bytes ||
                                     (row.bytes == smallest_->row.bytes && (*measured)->seconds < smallest_->value));
        if (!smallest_ || smaller) smallest_ = Mark{(*measured)->seconds, row};
    }
    rows_.push_back(std::move(json));
    if (row.bytes >= largest_ && row.bytes > 0) {
        largest_ = row.bytes;
        cpu_per_gigabyte_ = cpu_per_gigabyte(row, *out_of_place);
        sent_share_ = out_of_place->sent_bytes / static_cast<double>(row.bytes);
    }
}

void Report::footer() const {
    if (measurements_ == 0) return;
    if (options_.check) fmt::print("# Out of bounds values : {} {}\n", wrong_, wrong_ ? "FAILED" : "OK");
    fmt::print("# Avg bus bandwidth    : {:.4g}\n#\n", bandwidth_sum_ / measurements_);
    const char* verdict = !options_.check ? "The results were not checked (-c 0)."
                          : wrong_        ? "SOME RESULTS WERE WRONG; stderr says which."
                                          : "Every element of every result was right.";
    fmt::print("# {} among {} rank{}. {}\n", collective_.name, world_, world_ == 1 ? "" : "s", verdict);
    fmt::print("# The smallest message, {}, took {} us; the best bus bandwidth was {:.2f} GB/s, at {}.\n",
               size_text(smallest_->row.bytes), microseconds(smallest_->value), widest_->value, size_text(widest_->row.bytes));
    if (largest_ > 0 && world_ > 1) {
        fmt::print(
            "# At {} the busiest rank sent {:.3f} times the message (ideal: {:.3f}), and all ranks together spent {:.2f} CPU "
            "seconds per GB.\n",
            size_text(largest_), sent_share_, collective_.sent_factor(world_), cpu_per_gigabyte_);
    }
    std::fflush(stdout);
}

bool Report::write_json(const std::string& file) const {
    nlohmann::json json = {{"program", collective_.program},
                           {"version", RINGCCL_VERSION},
                           {"ranks", world_},
                           {"transport", options_.transport},
                           {"algorithm", options_.algorithm},
                           {"iterations", options_.iterations},
                           {"warmup", options_.warmup},
                           {"aggregate", options_.aggregate},
                           {"memory", memory_of(options_)},
                           {"device", options_.cuda ? "cuda" : "host"},
                           {"stream", options_.stream},
                           {"checked", options_.check},
                           {"wrong", wrong_},
                           {"average_busbw_gb_per_s", measurements_ ? bandwidth_sum_ / measurements_ : 0.0},
                           {"rows", rows_}};
    std::ofstream out(file);
    out << json.dump(2) << '\n';
    return static_cast<bool>(out.flush());
}

}  // namespace ringccl::perf
