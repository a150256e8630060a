// Says from the dumps of all ranks what went wrong, and at which rank.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "doctor.h"

namespace ringccl::doctor {
namespace {

constexpr int kUnreadable = 2;

// Of a directory the files that RINGCCL_RECORD leaves there.
Result<std::vector<std::string>> files_of(const std::vector<std::string>& names) {
    std::vector<std::string> files;
    for (const std::string& name : names) {
        std::error_code error;
        if (!std::filesystem::is_directory(name, error)) {
            files.push_back(name);
            continue;
        }
        const size_t before = files.size();
        std::filesystem::directory_iterator folder(name, error);
        if (error) return failure(ringSystemError, "cannot read {}: {}", name, error.message());
        for (const auto& entry : folder) {
            const std::string base = entry.path().filename();
            if (base.starts_with("ringccl-") && base.ends_with(".json")) files.push_back(entry.path());
        }
        if (files.size() == before) return failure(ringInvalidUsage, "{} holds no dumps (ringccl-*.json)", name);
    }
    std::sort(files.begin(), files.end());
    return files;
}

Result<Diagnosis> examine(const std::vector<std::string>& names) {
    RINGCCL_ASSIGN(const auto files, files_of(names));
    std::vector<RankDump> dumps;
    for (const std::string& file : files) {
        std::ifstream stream(file);
        if (!stream) return system_failure(errno, "cannot read {}", file);
        const auto content = nlohmann::json::parse(stream, nullptr, false);
        if (content.is_discarded()) return failure(ringInvalidArgument, "{} is not JSON", file);
        RINGCCL_ASSIGN(RankDump dump, read_dump(file, content));
        dumps.push_back(std::move(dump));
    }
    return diagnose(std::move(dumps));
}

int run(int argc, char** argv) {
    CLI::App app{
        "Reads the dumps of all ranks of a communicator (ringCommDump, RINGCCL_RECORD) and says what went wrong, at which "
        "rank.",
        "ringccl-doctor"};
    std::vector<std::string> names;
    bool machine = false;
    app.add_option("DUMP", names, "Files, or directories with files named ringccl-*.json")->required();
    app.add_flag("--json", machine, "Print JSON");
    app.footer("Exit status: 0 with a diagnosis, 2 if the files cannot be read or are not of one communicator.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : kUnreadable;
    }
    const auto diagnosis = examine(names);
    if (!diagnosis.ok()) {
        fmt::print(stderr, "ringccl-doctor: {}\n", diagnosis.status().text());
        return kUnreadable;
    }
    if (machine)
        fmt::print("{}\n", to_json(diagnosis.value()).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    else
        fmt::print("{}", to_text(diagnosis.value()));
    return 0;
}

}  // namespace
}  // namespace ringccl::doctor

int main(int argc, char** argv) {
    return ringccl::doctor::run(argc, argv);
}
