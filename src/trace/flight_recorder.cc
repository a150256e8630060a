#include "trace/flight_recorder.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/process.h"
#include "trace/what.h"
#include "trace/words.h"

namespace ringccl {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;

constexpr int kFormat = 1;  // of the dump

std::string version() {
    return fmt::format("{}.{}.{}", RINGCCL_MAJOR, RINGCCL_MINOR, RINGCCL_PATCH);
}

bool has_root(Kind kind) {
    return kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::gather || kind == Kind::scatter;
}

}  // namespace

FlightRecorder::FlightRecorder(Header header)
    : header_(std::move(header)),
      host_(host_name()),
      process_(process_id()),
      records_(std::make_unique<Record[]>(kRemembered)),
      progress_(std::make_unique<Progress[]>(static_cast<size_t>(header_.size))) {
    (void)TickScale::now();  // from here on the rate of the ticks can be told
}

uint64_t FlightRecorder::begin(const Operation& operation, const char* algorithm) {
    const uint64_t number = next_.load(relaxed);
    const Fingerprint& print = operation.print;
    const Kind kind = called(operation);
    const bool pair = kind == Kind::send || kind == Kind::recv;
    Record& record = slot(number);
    record.stamp.store(2 * number + 1, relaxed);
    record.sequence.store(print.sequence, release);
    record.count.store(print.count, release);
    record.what.store(What{kind, print.type, print.op, pair ? operation.peer : print.root}.packed(), release);
    record.algorithm.store(algorithm, release);
    record.end.store(0, release);
    record.waits_for.store(-1, release);
    record.result.store(ringSuccess, release);
    record.begin.store(ticks(), release);
    record.stamp.store(2 * number + 2, release);
    next_.store(number + 1, release);
    if (!pair && print.sequence >= begun_.load(relaxed)) {
        prints_.keep(print);
        begun_.store(print.sequence + 1, release);
    }
    return number;
}

// The record's place, unless so many have begun since that another has it.
FlightRecorder::Record* FlightRecorder::still(uint64_t record) const {
    Record& place = slot(record);
    return place.stamp.load(relaxed) == 2 * record + 2 ? &place : nullptr;
}

void FlightRecorder::runs(uint64_t record, const char* algorithm) {
    if (Record* place = still(record)) place->algorithm.store(algorithm, release);
}

void FlightRecorder::waits_for(uint64_t record, int rank) {
    if (Record* place = still(record)) place->waits_for.store(rank, release);
}

void FlightRecorder::end(uint64_t record, ringResult_t result) {
    if (Record* place = still(record)) {
        place->result.store(result, relaxed);
        place->end.store(std::max(ticks(), Ticks{1}), release);  // publishes the result
    }
    if (result == ringSuccess) Progress::count(completed_);
}

void FlightRecorder::abandon(ringResult_t result) {
    const uint64_t next = next_.load(relaxed);
    for (uint64_t back = 1; back <= std::min<uint64_t>(next, kRemembered); ++back)
        if (slot(next - back).end.load(relaxed) == 0) end(next - back, result);
}

uint64_t FlightRecorder::begun() const {
    return begun_.load(acquire);
}

uint64_t FlightRecorder::completed() const {
    return completed_.load(acquire);
}

std::optional<FlightRecorder::Entry> FlightRecorder::read(uint64_t record) const {
    const Record& place = slot(record);
    if (place.stamp.load(acquire) != 2 * record + 2) return std::nullopt;
    Entry entry;
    entry.print.sequence = place.sequence.load(acquire);
    entry.print.count = place.count.load(acquire);
    const What what = What::of(place.what.load(acquire));
    entry.algorithm = place.algorithm.load(acquire);
    entry.begin = place.begin.load(acquire);
    entry.end = place.end.load(acquire);
    entry.waits_for = place.waits_for.load(acquire);
    entry.result = static_cast<ringResult_t>(place.result.load(acquire));
    if (place.stamp.load(relaxed) != 2 * record + 2) return std::nullopt;

    entry.called = what.kind;
    entry.print.type = what.type;
    entry.print.op = what.op;
    (entry.pair() ? entry.peer : entry.print.root) = what.where;
    entry.print.kind = entry.pair() ? Kind::send : entry.called;
    return entry;
}

// The newest first, as a writer at full speed overtakes a reader that begins with the oldest.
std::vector<FlightRecorder::Entry> FlightRecorder::entries() const {
    const uint64_t next = next_.load(acquire);
    std::vector<Entry> all;
    for (uint64_t back = 1; back <= std::min<uint64_t>(next, kRemembered); ++back)
        if (auto entry = read(next - back)) all.push_back(*entry);
    std::reverse(all.begin(), all.end());
    return all;
}

std::string FlightRecorder::doing() const {
    for (const Entry& entry : entries()) {
        if (entry.end != 0) continue;
        std::string text =
            entry.called == Kind::send   ? fmt::format("send (message {}) to rank {}", entry.print.sequence, entry.peer)
            : entry.called == Kind::recv ? fmt::format("recv (message {}) from rank {}", entry.print.sequence, entry.peer)
                                         : name_of(entry.print);
        if (entry.waits_for >= 0) text += fmt::format(", waiting for rank {}", entry.waits_for);
        return text;
    }
    return "";
}

nlohmann::json FlightRecorder::dump(const Status& failure) const {
    using nlohmann::json;
    const auto all = entries();
    const TickScale scale = TickScale::now();
    json dump = {{"format", kFormat},
                 {"library", version()},
                 {"communicator", header_.communicator},
                 {"rank", header_.rank},
                 {"size", header_.size},
                 {"host", host_},
                 {"process", process_},
                 {"time_us", scale.unix_us(scale.at())},
                 {"failure", nullptr},
                 {"begun", begun()},
                 {"completed", completed()},
                 {"operations", json::array()},
                 {"peers", json::array()}};
    if (!failure.ok())
        dump["failure"] = {
            {"code", static_cast<int>(failure.code())}, {"name", result_name(failure.code())}, {"text", failure.text()}};
    for (const Entry& entry : all) {
        const bool ended = entry.end != 0, well = ended && entry.result == ringSuccess;
        json operation = {{"sequence", entry.print.sequence},
                          {"kind", kind_name(entry.called)},
                          {"type", type_name(static_cast<ringDataType_t>(entry.print.type))},
                          {"op", op_name(entry.print.op)},
                          {"count", entry.print.count},
                          {"algorithm", entry.algorithm == nullptr ? "" : entry.algorithm},
                          {"begin_us", scale.unix_us(entry.begin)},
                          {"end_us", nullptr},
                          {"result", nullptr},
                          {"waits_for", nullptr}};
        if (entry.pair()) operation["peer"] = entry.peer;
        if (has_root(entry.called)) operation["root"] = entry.print.root;
        if (ended) operation["end_us"] = scale.unix_us(entry.end);
        if (ended) operation["result"] = result_name(entry.result);
        if (!well && entry.waits_for >= 0) operation["waits_for"] = entry.waits_for;
        dump["operations"].push_back(std::move(operation));
    }
    for (int peer = 0; peer < header_.size; ++peer) {
        if (peer == header_.rank) continue;
        const auto text = [&](const std::vector<std::string>& texts) {
            return static_cast<size_t>(peer) < texts.size() ? texts[static_cast<size_t>(peer)] : std::string();
        };
        const Progress& progress = progress_[static_cast<size_t>(peer)];
        dump["peers"].push_back({{"rank", peer},
                                 {"name", text(header_.names)},
                                 {"transport", text(header_.transport)},
                                 {"offered", progress.offered.load(relaxed)},
                                 {"received", progress.received.load(relaxed)}});
    }
    return dump;
}

}  // namespace ringccl
