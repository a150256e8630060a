#include "perf/bench.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace ringccl::perf {
namespace {

constexpr double kQuietSeconds = 3.0;  // before progress is worth a line
constexpr double kTellEvery = 0.5;
constexpr size_t kNumbers = 4096, kWords = 128;  // that ranks tell each other at once: numbers, and bytes of each

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double percentile(const std::vector<double>& ascending, double share) {
    return ascending[static_cast<size_t>(share * static_cast<double>(ascending.size() - 1) + 0.5)];
}

size_t page_up(size_t bytes) {
    return (bytes + 4095) / 4096 * 4096;
}

}  // namespace

Progress::Progress(bool wanted) : wanted_(wanted && isatty(STDERR_FILENO)), next_(now() + kQuietSeconds) {}

void Progress::tell(const std::string& text) {
    if (!wanted_ || now() < next_) return;
    fmt::print(stderr, "\r\033[K{}", text);
    std::fflush(stderr);
    shown_ = true;
    next_ = now() + kTellEvery;
}

void Progress::clear() {
    if (shown_) fmt::print(stderr, "\r\033[K");
    shown_ = false;
}

Bench::Bench(const Collective& collective, const Options& options, Place& place, ringComm_t comm, bool first_of_process)
    : collective_(collective), options_(options), place_(place), comm_(comm), first_of_process_(first_of_process) {
    need(ringCommUserRank(comm_, &rank_), "ringCommUserRank");
    need(ringCommCount(comm_, &world_), "ringCommCount");
    // Big enough for every row. A root has the largest buffers, and every rank may become the root.
    for (const Type& type : options.types) {
        size_t count = collective_.count_for(options.max_bytes, type.size, world_);
        Layout layout = collective_.layout({rank_, world_, options.root < 0 ? rank_ : options.root, count});
        size_t send = layout.send * type.size, recv = layout.recv * type.size;
        send_stride_ = std::max(send_stride_, page_up(send));
        recv_stride_ = std::max(recv_stride_, page_up(recv));
    }
    send_ = std::make_unique<Buffer>(options.aggregate * send_stride_, place_);
    recv_ = std::make_unique<Buffer>(options.aggregate * recv_stride_, place_);
    notes_ = std::make_unique<Buffer>(std::max(kNumbers * sizeof(double), kWords * world_), place_);
}

void Bench::need(ringResult_t result, const char* call) const {
    if (result == ringSuccess) return;
    throw std::runtime_error(fmt::format("{} failed: {}: {}", call, ringGetErrorString(result), ringGetLastError(comm_)));
}

// What fails after a call on a device has returned is told by the communicator alone.
void Bench::finish() {
    place_.wait();
    ringResult_t state = ringSuccess;
    need(ringCommGetAsyncError(comm_, &state), "ringCommGetAsyncError");
    if (state != ringInProgress) need(state, collective_.name);
}

void Bench::barrier() {
    need(ringBarrier(comm_, place_.stream()), "ringBarrier");
    finish();
}

void Bench::combine(std::vector<double>& numbers, ringRedOp_t op) {
    for (size_t first = 0; first < numbers.size(); first += kNumbers) {
        size_t count = std::min(kNumbers, numbers.size() - first), bytes = count * sizeof(double);
        std::memcpy(notes_->image(), &numbers[first], bytes);
        notes_->push(bytes);
        need(ringAllReduce(notes_->data(), notes_->data(), count, ringFloat64, op, comm_, place_.stream()), "ringAllReduce");
        finish();
        notes_->pull(bytes);
        std::memcpy(&numbers[first], notes_->image(), bytes);
    }
}

std::vector<std::string> Bench::gather_words(const std::string& mine) {
    auto* all = reinterpret_cast<char*>(notes_->image());
    std::memset(all, 0, kWords * world_);
    mine.copy(all + kWords * rank_, kWords - 1);
    notes_->push(kWords * world_);
    need(ringAllGather(notes_->data() + kWords * rank_, notes_->data(), kWords, ringUint8, comm_, place_.stream()),
         "ringAllGather");
    finish();
    notes_->pull(kWords * world_);
    std::vector<std::string> words;
    for (int r = 0; r < world_; ++r) words.emplace_back(all + kWords * r);
    return words;
}

// In place both operands live in the larger of the two buffers.
Bench::Slot Bench::slot(const Case& row, bool in_place, int index, std::byte* send, std::byte* recv) const {
    Layout layout = collective_.layout(job(row));
    send += index * send_stride_;
    recv += index * recv_stride_;
    if (in_place) {
        std::byte* base = layout.send > layout.recv ? send : recv;
        send = base + layout.in_place->send * row.type.size;
        recv = base + layout.in_place->recv * row.type.size;
    }
    return {layout.send ? send : nullptr, layout.recv ? recv : nullptr};
}

Bench::Slot Bench::operands(const Case& row, bool in_place, int index) const {
    return slot(row, in_place, index, send_->data(), recv_->data());
}

Bench::Slot Bench::images(const Case& row, bool in_place, int index) const {
    return slot(row, in_place, index, send_->image(), recv_->image());
}

// In a group, the guard bands lie before the first call's operands and behind the last one's.
size_t Bench::used(const Buffer& buffer, const Case& row) const {
    Layout layout = collective_.layout(job(row));
    bool sends = &buffer == send_.get();
    return (options_.aggregate - 1) * (sends ? send_stride_ : recv_stride_) +
           (sends ? layout.send : layout.recv) * row.type.size;
}

// The receive buffer is poisoned first, so that in place the input lies on top.
void Bench::prepare(const Case& row, bool in_place, const Values& values) {
    Layout layout = collective_.layout(job(row));
    size_t size = row.type.size;
    for (Buffer* buffer : {send_.get(), recv_.get()}) buffer->guard(used(*buffer, row));
    Rows input = values.input(rank_);
    for (int index = 0; index < options_.aggregate; ++index) {
        Slot at = images(row, in_place, index);
        if (at.recv) Buffer::poison(at.recv, layout.recv * size);
        if (at.send) fill(input, size, 0, layout.send, at.send);
    }
    for (Buffer* buffer : {send_.get(), recv_.get()}) buffer->push(used(*buffer, row));
}

void Bench::call(const Case& row, bool in_place, ringRedOp_t op) {
    bool grouped = options_.aggregate > 1;
    if (grouped) need(ringGroupStart(), "ringGroupStart");
    for (int index = 0; index < options_.aggregate; ++index) {
        Slot at = operands(row, in_place, index);
        need(collective_.run({at.send, at.recv, job(row), row.type.value, op, comm_, place_.stream()}), collective_.name);
    }
    if (grouped) need(ringGroupEnd(), "ringGroupEnd");
}

void Bench::time(const Case& row, bool in_place, ringRedOp_t op, Measurement& measured, Progress& progress) {
    std::string what = fmt::format("{} of {} bytes, {}: ", collective_.name, row.bytes, in_place ? "in place" : "out of place");
    progress.tell(what + "warming up");
    for (int i = 0; i < options_.warmup; ++i) call(row, in_place, op);
    finish();

    ringCommStats_t before{}, after{};
    before.size = after.size = sizeof before;
    std::vector<double> single;
    if (options_.latency) single.reserve(options_.iterations);
    barrier();
    need(ringCommGetStats(comm_, &before), "ringCommGetStats");
    progress.tell(what + "measuring");

    double cpu = cpu_seconds(), begin = now(), last = begin;
    for (int i = 0; i < options_.iterations; ++i) {
        call(row, in_place, op);
        if (!options_.latency) continue;
        place_.wait();
        double done = now();
        single.push_back(done - last);
        last = done;
    }
    place_.wait();
    double calls = static_cast<double>(options_.iterations) * options_.aggregate;
    measured.seconds = (now() - begin) / calls;
    cpu = first_of_process_ ? (cpu_seconds() - cpu) / calls : 0;
    finish();
    need(ringCommGetStats(comm_, &after), "ringCommGetStats");

    std::vector<double> sum{measured.seconds, cpu}, least{measured.seconds}, most{measured.seconds};
    most.push_back(static_cast<double>(after.payloadSent - before.payloadSent) / calls);
    std::vector<double> first{rank_ == 0 ? measured.seconds : 0};
    combine(sum, ringSum);
    combine(least, ringMin);
    combine(most, ringMax);
    combine(first, ringSum);
    const double by_average[] = {first[0], sum[0] / world_, least[0], most[0]};
    measured.seconds = by_average[static_cast<int>(options_.average)];
    measured.cpu_seconds = sum[1];
    measured.sent_bytes = most[1];
    if (options_.latency) {
        combine(single, ringMax);
        std::ranges::sort(single);
        measured.latency = {percentile(single, 0.5), percentile(single, 0.99), single.back()};
    }
}

void Bench::complain(const Case& row, bool in_place, const std::string& what) const {
    fmt::print(stderr, "rank {}: {} of {} bytes ({} {}, {}): {}\n", rank_, collective_.name, row.bytes, row.type.name,
               row.operation.name, in_place ? "in place" : "out of place", what);
}

uint64_t Bench::check(const Case& row, bool in_place, const Values& values) {
    for (Buffer* buffer : {send_.get(), recv_.get()}) buffer->pull(used(*buffer, row));
    Layout layout = collective_.layout(job(row));
    size_t size = row.type.size;
    auto segments = collective_.expected(job(row));
    Rows result = collective_.reduces ? values.result() : Rows{};
    uint64_t wrong = 0;
    for (int index = 0; index < options_.aggregate; ++index) {
        Slot at = images(row, in_place, index);
        for (const Segment& segment : segments) {
            size_t where = 0;
            uint64_t found = 0;
            const Rows& rows = segment.source == kReduced ? result : values.input(segment.source);
            size_t here = count_wrong(rows, size, segment.first, segment.count, at.recv + segment.at * size, &where, &found);
            if (here && !wrong) {
                complain(row, in_place,
                         fmt::format("element {} of the result is {:#x} in memory, must be {:#x}", segment.at + where, found,
                                     rows[row_of(segment.first + where)]));
            }
            wrong += here;
        }
        size_t where = 0;
        uint64_t found = 0;
        if (!in_place && at.send) {
            size_t changed = count_wrong(values.input(rank_), size, 0, layout.send, at.send, &where, &found);
            if (changed) complain(row, in_place, fmt::format("{} elements of the send buffer were changed", changed));
            wrong += changed;
        }
    }
    size_t damaged = send_->damage(used(*send_, row)) + recv_->damage(used(*recv_, row));
    if (damaged) complain(row, in_place, fmt::format("{} bytes before or behind the buffers were overwritten", damaged));
    return wrong + damaged;
}

ringRedOp_t Bench::make_operation(const Case& row, const Values& values) const {
    if (row.operation.reduction != Reduction::mulsum) return row.operation.value;
    ringRedOp_t op = ringNumOps;
    uint64_t scalar = values.scalar(rank_);
    need(ringRedOpCreatePreMulSum(&op, &scalar, row.type.value, comm_), "ringRedOpCreatePreMulSum");
    return op;
}

std::optional<Measurement> Bench::measure(const Case& row, bool in_place, Progress& progress) {
    if (in_place && !collective_.layout(job(row)).in_place) return std::nullopt;
    Values values(row.type, row.operation.reduction, world_);
    ringRedOp_t op = make_operation(row, values);
    Measurement measured;
    prepare(row, in_place, values);
    time(row, in_place, op, measured, progress);
    if (measured.seconds > 0) measured.algorithm_bandwidth = static_cast<double>(row.bytes) / measured.seconds / 1e9;
    measured.bus_bandwidth = measured.algorithm_bandwidth * collective_.bus_factor(world_);

    // Once more from fresh input, since in place each call feeds on the last one's result.
    if (options_.check) {
        progress.tell(fmt::format("{} of {} bytes: checking", collective_.name, row.bytes));
        prepare(row, in_place, values);
        barrier();
        call(row, in_place, op);
        finish();
        std::vector<double> wrong{static_cast<double>(check(row, in_place, values))};
        combine(wrong, ringSum);
        measured.wrong = static_cast<uint64_t>(wrong[0]);
    }
    if (row.operation.reduction == Reduction::mulsum) need(ringRedOpDestroy(op, comm_), "ringRedOpDestroy");
    return measured;
}

}  // namespace ringccl::perf
