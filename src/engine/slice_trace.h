// Tells the timeline when slices came, left and were taken. Exists only while a timeline is written.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <utility>

#include "base/operation.h"
#include "trace/timeline.h"
#include "transports/transport.h"

namespace ringccl {

class SliceTrace {
public:
    explicit SliceTrace(Timeline& timeline) : timeline_(timeline) {}

    Timeline& timeline() { return timeline_; }
    void received(int peer, int lane, const Fingerprint& print, size_t bytes, Timeline::Ticks since) {
        timeline_.received(peer, lane, print, bytes, since, Timeline::now());
    }
    void offered(int peer, int lane, SendLink& link, const Fingerprint& print, size_t bytes);
    // Tells of the slices that have been taken since the last look.
    void look();

private:
    struct Slice {
        uint64_t number;
        Fingerprint print;
        size_t bytes;
        Timeline::Ticks at;
    };
    struct Link {
        SendLink* link = nullptr;
        std::deque<Slice> under_way;
    };

    Timeline& timeline_;
    std::map<std::pair<int, int>, Link> links_;  // by peer and lane
};

}  // namespace ringccl
