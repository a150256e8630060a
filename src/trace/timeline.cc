#include "trace/timeline.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/process.h"
#include "trace/log.h"
#include "trace/trace_file.h"
#include "trace/words.h"

namespace ringccl {
namespace {

using std::chrono::milliseconds;

constexpr size_t kPiece = 768;         // events written at once, some 150 bytes each
constexpr size_t kMostKept = 8 << 20;  // bytes, while another process has the file locked
constexpr double kRestlessNs = 1e9;    // what is older is written when there is time
constexpr milliseconds kPatience{20};  // of a rank at work
constexpr milliseconds kLastPatience{2000};

// Rows, by number, in the order in which they are shown. Operations that overlap, as those of a group do, get a row each.
constexpr int kWaitingRow = 1000000;
constexpr int kFirstLinkRow = kWaitingRow + 1;
constexpr int kRowsOfPeer = 64;

// Times are read at slightly different scales: operations that overlap by less came one after the other.
constexpr int64_t kBlurNs = 500;

// Rows of one rank stand together. Two communicators with the same rank in one file must not be mixed, and their processes must
// choose the same number without a word.
int64_t group_of(const std::string& communicator, int rank) {
    uint32_t hash = 2166136261u;  // FNV-1a
    for (unsigned char byte : communicator) hash = (hash ^ byte) * 16777619u;
    return static_cast<int64_t>(hash % 200000) * 10000 + rank;
}

std::string quoted(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

struct Event {
    enum class What : uint8_t { operation, sent, received, slept };
    What what = What::slept;
    Kind called = Kind::barrier;
    ringResult_t result = ringSuccess;
    int peer = -1;
    int lane = 0;
    Fingerprint print;
    const char* algorithm = nullptr;
    size_t bytes = 0;
    Ticks begin = 0, end = 0;
};

// "allReduce 17", "recv 3 from rank 2".
std::string title(const Event& event) {
    std::string text = fmt::format("{} {}", kind_name(event.called), event.print.sequence);
    if (event.called == Kind::send) text += fmt::format(" to rank {}", event.peer);
    if (event.called == Kind::recv) text += fmt::format(" from rank {}", event.peer);
    return text;
}

class FileTimeline final : public Timeline {
public:
    FileTimeline(TraceFile file, const std::string& communicator, int rank)
        : file_(std::move(file)), rank_(rank), group_(group_of(communicator, rank)) {
        events_.reserve(kPiece);
    }

    ~FileTimeline() override {
        if (process_ == process_id()) write(kLastPatience);
    }

    void operation(const Operation& operation, const char* algorithm, Ticks begin, Ticks end, ringResult_t result) override {
        const Fingerprint& print = operation.print;
        const size_t bytes = print.kind == Kind::barrier ? 0 : print.count * type_size(operation.type());
        add({Event::What::operation, called(operation), result, operation.peer, 0, print, algorithm, bytes, begin, end}, true);
    }
    void sent(int peer, int lane, const Fingerprint& print, size_t bytes, Ticks begin, Ticks end) override {
        add({Event::What::sent, print.kind, ringSuccess, peer, lane, print, nullptr, bytes, begin, end}, false);
    }
    void received(int peer, int lane, const Fingerprint& print, size_t bytes, Ticks begin, Ticks end) override {
        const Kind kind = print.kind == Kind::send ? Kind::recv : print.kind;
        add({Event::What::received, kind, ringSuccess, peer, lane, print, nullptr, bytes, begin, end}, false);
    }
    void slept(Ticks begin, Ticks end) override {
        add({Event::What::slept, Kind::barrier, ringSuccess, -1, 0, {}, nullptr, 0, begin, end}, true);
    }

    // The first lines; they show whether the file can be written.
    Status introduce(const std::string& communicator, int size);

private:
    void add(const Event& event, bool time_to_write);
    void write(milliseconds patience);
    void say(const Event& event, const TickScale& scale);
    int operations_row(int64_t begin);
    int64_t& end_of(int row, const Event& event);
    template <class... Args>
    void line(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(lines_), format, std::forward<Args>(args)...);
    }

    TraceFile file_;
    const int rank_;
    const int64_t group_;
    const pid_t process_ = process_id();
    std::vector<Event> events_;    // not yet put into words
    std::string lines_;            // not yet taken by the file
    std::map<int, int64_t> rows_;  // where the last event of each row ends
    double ns_per_tick_ = 1;
    Ticks oldest_ = 0;  // of events_
    size_t lost_ = 0;
    bool spoilt_ = false;
};

Status FileTimeline::introduce(const std::string& communicator, int size) {
    const TickScale scale = TickScale::now();
    ns_per_tick_ = scale.ns_per_tick();
    char host[256] = {};
    if (::gethostname(host, sizeof host - 1) != 0) host[0] = 0;
    const std::string name = fmt::format("rank {} of {}, communicator {}", rank_, size, communicator.substr(0, 12));
    line(
        "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{},\"tid\":0,\"args\":{{\"name\":{},\"host\":{},\"process\":{},"
        "\"unix_us_of_zero\":{}}}}},\n",
        group_, quoted(name), quoted(host), process_, scale.unix_us_of_steady_zero());
    line("{{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":{0},\"tid\":0,\"args\":{{\"sort_index\":{0}}}}},\n", group_);
    auto written = file_.append(lines_, kLastPatience);
    if (!written.ok()) return written.status();
    if (written.value() == TraceFile::Written::all) lines_.clear();
    return {};
}

void FileTimeline::add(const Event& event, bool time_to_write) {
    if (spoilt_) return;
    if (lines_.size() > kMostKept) {
        ++lost_;
    } else {
        if (events_.empty()) oldest_ = event.begin;
        events_.push_back(event);
    }
    const double age = static_cast<double>(static_cast<int64_t>(event.end - oldest_)) * ns_per_tick_;
    if (events_.size() >= kPiece || (time_to_write && age > kRestlessNs)) write(kPatience);
}

// What is in lines_ stays there until the file has taken it.
void FileTimeline::write(milliseconds patience) {
    if (spoilt_) return;
    const TickScale scale = TickScale::now();
    ns_per_tick_ = scale.ns_per_tick();
    oldest_ = scale.at();
    for (const Event& event : events_) say(event, scale);
    events_.clear();
    auto written = file_.append(lines_, patience);
    if (!written.ok()) {
        spoilt_ = true;
        log().warn("rank {} ends its timeline here: {}", rank_, written.status().text());
    } else if (written.value() == TraceFile::Written::all) {
        lines_.clear();
        if (lost_ != 0) log().warn("rank {}: {} events are missing in the timeline, which others kept locked", rank_, lost_);
        lost_ = 0;
    }
}

// A row that is free by then.
int FileTimeline::operations_row(int64_t begin) {
    int row = 0;
    while (rows_.contains(row) && rows_[row] > begin + kBlurNs) ++row;
    return row;
}

// A new row is given its name.
int64_t& FileTimeline::end_of(int row, const Event& event) {
    const auto [at, is_new] = rows_.try_emplace(row, std::numeric_limits<int64_t>::min());
    if (is_new) {
        const std::string name =
            event.what == Event::What::operation ? row == 0 ? "operations" : fmt::format("operations ({})", row + 1)
            : event.what == Event::What::slept
                ? "waiting"
                : fmt::format("{} rank {}, lane {}", event.what == Event::What::sent ? "to" : "from", event.peer, event.lane);
        line("{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":\"{}\"}}}},\n", group_, row,
             name);
        line("{{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":{},\"tid\":{},\"args\":{{\"sort_index\":{}}}}},\n", group_,
             row, row);
    }
    return at->second;
}

void FileTimeline::say(const Event& event, const TickScale& scale) {
    const int64_t began = scale.steady_ns(event.begin), ended = scale.steady_ns(event.end);
    const bool operation = event.what == Event::What::operation, sleep = event.what == Event::What::slept;
    const int row = operation ? operations_row(began)
                    : sleep   ? kWaitingRow
                              : kFirstLinkRow + event.peer * kRowsOfPeer + event.lane * 2 + (event.what == Event::What::sent);
    // In a row each event ends before the next begins: viewers draw anything else in the wrong place.
    int64_t& last = end_of(row, event);
    const int64_t begin = std::max(began, last), end = std::max(begin, ended), took = end - begin;
    last = end;
    line("{{\"name\":\"{}\",\"cat\":\"{}\",\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{}.{:03},\"dur\":{}.{:03}",
         operation ? title(event)
         : sleep   ? "sleep"
                   : "slice",
         operation ? "operation"
         : sleep   ? "sleep"
                   : "slice",
         group_, row, begin / 1000, begin % 1000, took / 1000, took % 1000);
    if (operation) {
        line(
            ",\"args\":{{\"count\":{},\"type\":\"{}\",\"op\":\"{}\",\"bytes\":{},\"root\":{},\"algorithm\":\"{}\",\"result\":"
            "\"{}\"}}",
            event.print.count, type_name(static_cast<ringDataType_t>(event.print.type)), op_name(event.print.op), event.bytes,
            event.print.root, event.algorithm == nullptr ? "" : event.algorithm, result_name(event.result));
    } else if (!sleep) {
        line(",\"args\":{{\"operation\":\"{}\",\"bytes\":{},\"queued_us\":{}.{:03}}}", title(event), event.bytes,
             (begin - began) / 1000, (begin - began) % 1000);
    }
    line("}},\n");
}

}  // namespace

Result<std::unique_ptr<Timeline>> Timeline::open(const std::string& file, const std::string& communicator, int rank, int size) {
    std::string name = file;
    const std::string number = std::to_string(rank);
    for (size_t at = 0; (at = name.find("%r", at)) != name.npos; at += number.size()) name.replace(at, 2, number);
    RINGCCL_ASSIGN(TraceFile opened, TraceFile::open(name));
    auto timeline = std::make_unique<FileTimeline>(std::move(opened), communicator, rank);
    RINGCCL_TRY(timeline->introduce(communicator, size));
    return Result<std::unique_ptr<Timeline>>(std::move(timeline));
}

}  // namespace ringccl
