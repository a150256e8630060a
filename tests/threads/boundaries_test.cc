// Counts around the places where the engine cuts: slices, chunks, windows, and large odd counts; and every alignment.
//
// Slices are made 4 KiB here, so that messages of a few hundred KiB already fill links and wrap every ring of slots many times.
#include <vector>

#include "paths.h"
#include "support/case.h"
#include "support/thread_ranks.h"

namespace ringccl::test {
namespace {

class Boundaries : public OnEveryPath {
protected:
    void SetUp() override {
        OnEveryPath::SetUp();
        env_.set("RINGCCL_SLICE_BYTES", "4096");
    }
    WorldOptions world() const { return {.size = GetParam().size, .transport = GetParam().path.transport}; }
};

// Kinds whose count is the whole message, and kinds whose count is one rank's part of it.
constexpr Kind kWhole[] = {Kind::all_reduce, Kind::broadcast, Kind::reduce};
constexpr Kind kParts[] = {Kind::scatter_reduce, Kind::all_gather, Kind::gather, Kind::scatter, Kind::all_to_all};

template <size_t N>
Verdict in_both_places(const Member& me, const Kind (&kinds)[N], Case c) {
    c.root = int(c.count % me.size);
    for (bool in_place : {false, true}) {
        c.in_place = in_place;
        for (Kind kind : kinds) {
            c.kind = kind;
            if (in_place && kind == Kind::all_to_all) continue;
            if (Verdict v = run_case(me, c); !v) return v;
        }
    }
    return good();
}

// One element to either side of one slice, of one slice per rank, and of more slices than a link holds.
TEST_P(Boundaries, Slices) {
    run_ranks(world(), [](const Member& me) {
        for (ringDataType_t type : {ringInt8, ringFloat16, ringFloat32, ringFloat64}) {
            const size_t slice = 4096 / type_size(type);
            for (size_t beside : {-1, 0, 1}) {
                for (size_t slices : {1, me.size, me.size * 9})
                    if (Verdict v = in_both_places(me, kWhole, {.type = type, .count = slice * slices + beside}); !v) return v;
                for (size_t slices : {1, 9})
                    if (Verdict v = in_both_places(me, kParts, {.type = type, .count = slice * slices + beside}); !v) return v;
            }
            if (quick()) break;
        }
        return good();
    });
}

TEST_P(Boundaries, Megabytes) {
    run_ranks(world(), [](const Member& me) {
        for (size_t count : {(size_t(1) << 20) - 1, (size_t(1) << 20) + 1}) {
            if (quick()) count /= 16;
            for (Case c : {Case{.type = ringFloat32, .count = count}, Case{.type = ringUint8, .op = Op::max, .count = count},
                           Case{.type = ringBfloat16, .op = Op::avg, .count = count, .in_place = true}})
                if (Verdict v = run_case(me, c); !v) return v;
            size_t part = count / me.size;
            for (Kind kind : {Kind::scatter_reduce, Kind::all_gather, Kind::all_to_all, Kind::gather, Kind::scatter})
                if (Verdict v = run_case(me, {.kind = kind, .count = part, .root = me.size - 1}); !v) return v;
            for (Kind kind : {Kind::broadcast, Kind::reduce})
                if (Verdict v = run_case(me, {.kind = kind, .count = count, .root = me.size / 2}); !v) return v;
        }
        return good();
    });
}

// Buffers that begin anywhere, so that slices are cut anywhere: no element is aligned to its own size.
TEST_P(Boundaries, EveryAlignment) {
    run_ranks(world(), [](const Member& me) {
        for (size_t shift = 0; shift < 16; shift += quick() ? 5 : 1)
            for (ringDataType_t type : {ringUint8, ringFloat16, ringFloat32, ringFloat64}) {
                Case c = {.type = type, .count = 1500, .shift = shift};
                if (Verdict v = in_both_places(me, kWhole, c); !v) return v;
                if (Verdict v = in_both_places(me, kParts, c); !v) return v;
            }
        return good();
    });
}

INSTANTIATE_TEST_SUITE_P(, Boundaries, ::testing::ValuesIn(kPlaces), place_name);

// The slice size that users have.
class DefaultSlices : public OnEveryPath {};

TEST_P(DefaultSlices, Boundaries) {
    run_ranks({.size = GetParam().size, .transport = GetParam().path.transport}, [](const Member& me) {
        const size_t slice = 128 * 1024 / sizeof(float);
        for (size_t whole : {slice, slice * me.size, slice * me.size * 2})
            for (size_t count : {whole - 1, whole, whole + 1})
                for (bool in_place : {false, true})
                    if (Verdict v = run_case(me, {.count = count, .in_place = in_place, .shift = 4}); !v) return v;
        return good();
    });
}

INSTANTIATE_TEST_SUITE_P(, DefaultSlices,
                         ::testing::Values(Place{kPointer, 3}, Place{kMemfd, 3}, Place{kCma, 4}, Place{kTcp, 3}), place_name);

}  // namespace
}  // namespace ringccl::test
