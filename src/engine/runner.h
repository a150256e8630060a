// Runs one channel of a plan: for each slice that its cursor comes to: take, combine, put, offer. advance() does what can be
// done now and never waits.
//
// A slice is begun when all its sources have come, and ended when the device is done with it and the sinks have room: then it
// is offered, and the sources' memory given back. On the host that is one moment; on a device several slices are under way.
//
// Where a result goes, and how often its bytes are touched, is decided per slice from what the sinks' links can take:
//   - a slice small enough to travel inside a message is offered from anywhere, and free at once;
//   - the caller's own memory is offered as it stands if every sink takes it there, and held until they have;
//   - otherwise a copy in the stage is offered, which outlives the operation.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/bound_step.h"
#include "engine/cursor.h"
#include "engine/slice_trace.h"
#include "engine/stage.h"

namespace ringccl {

class Runner {
public:
    enum class State { idle, moved, done, failed };

    // Each rank that some step offers to, once, with its link.
    struct Sink {
        int rank;
        SendLink* link;
    };
    Runner(std::vector<BoundStep> steps, std::vector<Sink> sinks, int lane, const Arithmetic& arithmetic, Device& device);

    int lane() const { return lane_; }
    // What start() must be given: bytes on the device for a value in between, and bytes for landings.
    size_t work_bytes() const { return work_bytes_; }
    size_t landing_bytes() const { return landing_bytes_; }

    // Where results wait for those that they are offered to. `host` can be shown to every sink.
    struct Stages {
        Stage* device;
        Stage* host;
    };
    // `trace`: null, or who is told of every slice.
    void start(const Binding& binding, Stages stages, std::byte* work, std::byte* landings, SliceTrace* trace);
    State advance();
    // What went wrong, after `failed`.
    const Status& status() const { return status_; }
    // A rank that must do something before this one can go on, or -1.
    int waits_for();
    // Another runner has failed, or the device; nothing is under way on the device any more.
    void abandon();

private:
    struct Hold {
        int rank;
        SendLink* link;
        uint64_t until = 0;  // the number of the last slice that is the caller's own memory
        uint64_t ahead = 0;  // slices that have been begun and not yet offered
    };
    struct Begun {
        size_t step = 0, round = 0;
        Device::Ticket ticket = 0;
        Source source;  // what is offered, if the step has sinks
        size_t bytes = 0;
        bool offers = false, held = false;
        std::vector<uint8_t> pinned;  // sources that are pinned
        Timeline::Ticks since = 0;    // when the slice became the current one; only with a trace
    };

    void measure_memory();
    const BoundStep& step() const { return steps_[cursor_.step()]; }
    Begun& begun(size_t number) { return begun_[number % begun_.size()]; }
    std::byte* local_memory(const Region& region, size_t begin) const;
    const Block* block_of(const Region& region) const;
    std::byte* landing(size_t source, size_t slice) const;

    bool post();
    bool take_sources();
    bool begin(Span span);
    bool place(Begun& slice, std::byte* home, const Region& region);
    void push(Begun& slice, bool works);
    bool pin(Begun& slice);
    void unpin(Begun& slice);
    void reduce(std::byte* out, Span span);
    bool end_begun();
    bool sinks_ready(const BoundStep& step) const;
    void offer(const BoundStep& step, const Begun& slice);
    void give_back(const BoundStep& step, const Begun& slice);
    bool settled();
    State stuck(bool moved);
    Status differs(int source, const View& view) const;

    std::vector<BoundStep> steps_;
    int lane_;
    const Arithmetic* arithmetic_;
    Device* device_;
    size_t depth_;
    size_t most_sources_ = 0;
    size_t largest_slice_ = 0;  // bytes, rounded up to Stage::kAlign
    size_t landing_sets_ = 1;   // on a device the landings of one step are still read while the next one's are filled
    size_t work_bytes_ = 0, landing_bytes_ = 0;
    size_t eager_bytes_ = 0;  // what is larger need not be copied, only for its owner to go on
    std::vector<Hold> holds_;
    std::vector<View> views_;
    std::vector<const void*> operands_;

    const Binding* binding_ = nullptr;
    Stages stages_{};
    std::byte* work_ = nullptr;
    std::byte* landings_ = nullptr;
    SliceTrace* trace_ = nullptr;
    Timeline::Ticks slice_since_ = 0;

    Cursor cursor_;
    bool posted_ = false;  // whether the current step's sources know where to put its slices
    size_t viewed_ = 0;    // sources of the current slice that have been taken
    std::vector<Begun> begun_;
    size_t last_begun_ = 0, last_done_ = 0, last_ended_ = 0;  // numbers: begun; done by the device; offered and given back
    Status status_;
};

}  // namespace ringccl
