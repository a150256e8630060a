#include "engine/slice_trace.h"

namespace ringccl {

void SliceTrace::offered(int peer, int lane, SendLink& link, const Fingerprint& print, size_t bytes) {
    Link& one = links_[{peer, lane}];
    one.link = &link;
    one.under_way.push_back({link.offered(), print, bytes, Timeline::now()});
}

void SliceTrace::look() {
    const Timeline::Ticks now = Timeline::now();
    for (auto& [where, one] : links_) {
        if (one.under_way.empty()) continue;
        const uint64_t taken = one.link->taken();
        for (; !one.under_way.empty() && one.under_way.front().number <= taken; one.under_way.pop_front()) {
            const Slice& slice = one.under_way.front();
            timeline_.sent(where.first, where.second, slice.print, slice.bytes, slice.at, now);
        }
    }
}

}  // namespace ringccl
