// One rank's part in measuring and checking one row of the table.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "perf/buffer.h"
#include "perf/collective.h"
#include "perf/options.h"
#include "perf/place.h"
#include "perf/values.h"

namespace ringccl::perf {

// What a row is about.
struct Case {
    Type type;
    Operation operation;
    int root = 0;
    size_t count = 0;  // elements, as in the C call
    size_t bytes = 0;  // the message size that bandwidth is reckoned from
};

struct Latency {
    double p50 = 0, p99 = 0, most = 0;  // seconds
};

// The verdict of all ranks on one form (out of place, in place) of a case; equal on every rank.
struct Measurement {
    double seconds = 0;                                 // of one call
    double algorithm_bandwidth = 0, bus_bandwidth = 0;  // 1e9 bytes a second
    std::optional<uint64_t> wrong;                      // elements and guard bytes, all ranks; unset: not checked
    Latency latency;                                    // with --latency
    double cpu_seconds = 0;                             // of one call, all ranks together, with the library's threads
    double sent_bytes = 0;                              // in one call by the rank that sent most, without headers
};

// Progress is told to whoever watches a terminal.
class Progress {
public:
    explicit Progress(bool wanted);
    ~Progress() { clear(); }
    // Shows the text if the program has run for some seconds already and not just been shown another.
    void tell(const std::string& text);
    void clear();

private:
    bool wanted_;
    bool shown_ = false;
    double next_;
};

class Bench {
public:
    // `comm`, which is on that place, and `place` stay the caller's. `first_of_process`: CPU time is counted by one rank of
    // each process.
    Bench(const Collective& collective, const Options& options, Place& place, ringComm_t comm, bool first_of_process);
    Bench(const Bench&) = delete;
    Bench& operator=(const Bench&) = delete;

    int rank() const { return rank_; }
    int world() const { return world_; }

    // Collective, like everything here. Unset: this collective has no in-place form. Throws std::runtime_error with the
    // library's own words if a call fails.
    std::optional<Measurement> measure(const Case& row, bool in_place, Progress& progress);

    // What each rank says, on all ranks, in rank order. `mine` is cut to 128 bytes.
    std::vector<std::string> gather_words(const std::string& mine);

private:
    struct Slot {  // the operands of one call
        std::byte* send;
        std::byte* recv;
    };

    Job job(const Case& row) const { return {rank_, world_, row.root, row.count}; }
    Slot slot(const Case& row, bool in_place, int index, std::byte* send, std::byte* recv) const;
    Slot operands(const Case& row, bool in_place, int index) const;  // for calls
    Slot images(const Case& row, bool in_place, int index) const;    // for CPUs
    size_t used(const Buffer& buffer, const Case& row) const;        // bytes, by all calls of a group
    void prepare(const Case& row, bool in_place, const Values& values);
    void call(const Case& row, bool in_place, ringRedOp_t op);
    void time(const Case& row, bool in_place, ringRedOp_t op, Measurement& measured, Progress& progress);
    uint64_t check(const Case& row, bool in_place, const Values& values);
    void complain(const Case& row, bool in_place, const std::string& what) const;
    void need(ringResult_t result, const char* call) const;
    ringRedOp_t make_operation(const Case& row, const Values& values) const;
    void combine(std::vector<double>& numbers, ringRedOp_t op);  // over all ranks
    void barrier();
    void finish();  // all calls so far

    const Collective& collective_;
    const Options& options_;
    Place& place_;
    ringComm_t comm_;
    bool first_of_process_;
    int rank_ = 0, world_ = 1;
    size_t send_stride_ = 0, recv_stride_ = 0;  // bytes from one call's operand to the next one's in a group
    std::unique_ptr<Buffer> send_, recv_;
    std::unique_ptr<Buffer> notes_;  // what the ranks tell each other
};

}  // namespace ringccl::perf
