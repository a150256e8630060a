#include "support/case.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "support/device_side.h"
#include "support/guarded.h"
#include "support/values.h"

namespace ringccl::test {
namespace {

bool reduces(Kind kind) {
    return kind == Kind::all_reduce || kind == Kind::scatter_reduce || kind == Kind::reduce;
}

// What one rank brings and gets, in elements. In place the smaller buffer lies in the larger one, `rank` or `root` blocks in.
struct Part {
    size_t send = 0, recv = 0;
    size_t inset = 0;
    bool writes = true;  // whether this rank's recv is written
};

Part part_of(const Case& c, const Member& me) {
    size_t n = c.count, all = n * me.size, mine = n * me.rank;
    bool root = me.rank == c.root;
    switch (c.kind) {
        case Kind::scatter_reduce:
            return {all, n, mine, true};
        case Kind::all_gather:
            return {n, all, mine, true};
        case Kind::all_to_all:
            return {all, all, 0, true};
        case Kind::reduce:
            return {n, root || c.in_place ? n : 0, 0, root};
        case Kind::broadcast:
            return {root || c.in_place ? n : 0, n, 0, true};
        case Kind::gather:
            return {n, root ? all : 0, root ? mine : 0, root};
        case Kind::scatter:
            return {root ? all : 0, n, root ? mine : 0, true};
        default:
            return {n, n, 0, true};
    }
}

// The bytes that recv must hold after the call.
std::vector<std::byte> expected(const Case& c, const Member& me, size_t elements) {
    size_t width = type_size(c.type);
    std::vector<std::byte> bytes(elements * width);
    auto from = [&](int rank, size_t first, size_t block) {
        put_inputs(bytes.data() + block * c.count * width, c.type, Op::none, rank, first, c.count);
    };
    switch (c.kind) {
        case Kind::broadcast:
            from(c.root, 0, 0);
            break;
        case Kind::scatter:
            from(c.root, me.rank * c.count, 0);
            break;
        case Kind::all_gather:
        case Kind::gather:
            for (int rank = 0; rank < me.size; ++rank) from(rank, 0, rank);
            break;
        case Kind::all_to_all:
            for (int rank = 0; rank < me.size; ++rank) from(rank, me.rank * c.count, rank);
            break;
        default:
            put_results(bytes.data(), c.type, c.op, me.size, c.kind == Kind::scatter_reduce ? me.rank * c.count : 0, elements);
    }
    return bytes;
}

ringResult_t call(const Case& c, const Member& me, const void* send, void* recv, ringRedOp_t op) {
    switch (c.kind) {
        case Kind::all_reduce:
            return ringAllReduce(send, recv, c.count, c.type, op, me.comm, me.stream);
        case Kind::scatter_reduce:
            return scatterReduce(send, recv, c.count, c.type, op, me.comm, me.stream);
        case Kind::all_gather:
            return allGather(send, recv, c.count, c.type, me.comm, me.stream);
        case Kind::broadcast:
            return ringBroadcast(send, recv, c.count, c.type, c.root, me.comm, me.stream);
        case Kind::reduce:
            return ringReduce(send, recv, c.count, c.type, op, c.root, me.comm, me.stream);
        case Kind::gather:
            return ringGather(send, recv, c.count, c.type, c.root, me.comm, me.stream);
        case Kind::scatter:
            return ringScatter(send, recv, c.count, c.type, c.root, me.comm, me.stream);
        case Kind::all_to_all:
            return ringAllToAll(send, recv, c.count, c.type, me.comm, me.stream);
        default:
            return ringBarrier(me.comm, me.stream);
    }
}

std::string hex(const std::byte* at, size_t bytes) {
    std::string text;
    for (size_t i = bytes; i-- > 0;) text += fmt::format("{:02x}", int(at[i]));
    return text;
}

Verdict same(const std::byte* got, const std::vector<std::byte>& want, size_t width, const char* what, const Case& c,
             const Member& me) {
    if (want.empty() || std::memcmp(got, want.data(), want.size()) == 0) return good();
    size_t i = 0;
    while (got[i] == want[i]) ++i;
    i = i / width * width;
    return bad("{}, rank {} of {}: element {} of {} is {}, should be {}", c.text(), me.rank, me.size, i / width, what,
               hex(got + i, width), hex(want.data() + i, width));
}

// A guarded buffer as the call sees it: where it stands, or its copy on the device.
class OnSide {
public:
    OnSide(const Member& me, int number, Guarded& host) : me_(me), host_(host), there_(host.all().data()) {
        if (DeviceSide* side = DeviceSide::of_program())
            there_ = side->memory(me, number, host.all().size(), reinterpret_cast<size_t>(host.all().data()) % 64);
    }
    std::byte* at(std::byte* host) const { return there_ + (host - host_.all().data()); }
    Verdict put() const {
        DeviceSide* side = DeviceSide::of_program();
        return side == nullptr ? good() : side->copy(me_, there_, host_.all().data(), host_.all().size());
    }
    Verdict get() const {
        DeviceSide* side = DeviceSide::of_program();
        return side == nullptr ? good() : side->copy(me_, host_.all().data(), there_, host_.all().size());
    }

private:
    const Member& me_;
    Guarded& host_;
    std::byte* there_;
};

}  // namespace

std::string Case::text() const {
    return fmt::format("{} of {} {} {}{}, root {}, {} bytes off alignment", kind_name(kind), count, type_name(type),
                       reduces(kind) ? op_name(op) : "", in_place ? " in place" : "", root, shift);
}

Verdict run_case(const Member& me, const Case& c) {
    const size_t width = type_size(c.type);
    const Part part = part_of(c, me);
    const Op op = reduces(c.kind) ? c.op : Op::none;

    // In place both lie in `large`; else send is in `large` and recv in `small`, whatever their sizes.
    Guarded large(width * (c.in_place ? std::max(part.send, part.recv) : part.send), c.shift);
    Guarded small(width * (c.in_place ? 0 : part.recv), c.shift);
    std::byte* send = large.data() + (c.in_place && part.send < part.recv ? part.inset * width : 0);
    std::byte* recv = !c.in_place ? small.data() : large.data() + (part.recv < part.send ? part.inset * width : 0);
    put_inputs(send, c.type, op, me.rank, 0, part.send);

    std::vector<std::byte> large_after(large.data(), large.data() + large.bytes());
    std::vector<std::byte> small_after(small.data(), small.data() + small.bytes());
    if (part.writes && part.recv > 0) {
        std::vector<std::byte> want = expected(c, me, part.recv);
        std::vector<std::byte>& after = c.in_place ? large_after : small_after;
        size_t at = recv - (c.in_place ? large.data() : small.data());
        std::copy(want.begin(), want.end(), after.begin() + at);
    }

    ringRedOp_t public_ = public_op(op);
    if (op == Op::premul) {
        auto scalar = premul_scalar(c.type, me.rank);
        Verdict made = worked(ringRedOpCreatePreMulSum(&public_, scalar.data(), c.type, me.comm), "ringRedOpCreatePreMulSum");
        if (!made) return made;
    }
    const OnSide large_there(me, 0, large), small_there(me, 1, small);
    if (Verdict there = large_there.put(); !there) return there;
    if (Verdict there = small_there.put(); !there) return there;
    // A rank that has nothing to send or to receive says so with NULL, as the header allows.
    const OnSide& to = c.in_place ? large_there : small_there;
    ringResult_t result =
        call(c, me, part.send > 0 ? large_there.at(send) : nullptr, part.recv > 0 ? to.at(recv) : nullptr, public_);
    if (result == ringSuccess && me.stream && DeviceSide::of_program() == nullptr)
        result = ringStreamSynchronize(static_cast<ringStream_t>(me.stream));
    Verdict done = worked(result, kind_name(c.kind));
    if (done) done = large_there.get();
    if (done) done = small_there.get();
    if (done) done = await_side(me);
    if (!done) return done << " (" << c.text() << ", rank " << me.rank << " of " << me.size << ")";
    if (op == Op::premul) {
        Verdict gone = worked(ringRedOpDestroy(public_, me.comm), "ringRedOpDestroy");
        if (!gone) return gone;
    }

    Verdict first = same(large.data(), large_after, width, c.in_place ? "the buffer" : "send", c, me);
    if (!first) return first;
    Verdict second = same(small.data(), small_after, width, "recv", c, me);
    if (!second) return second;
    if (!large.intact() || !small.intact()) return bad("{}, rank {}: a guard band was written", c.text(), me.rank);
    return good();
}

}  // namespace ringccl::test
