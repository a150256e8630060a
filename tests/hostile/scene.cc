#include "scene.h"

#include <algorithm>
#include <cstring>

namespace ringccl::test {
namespace {

bool among(Kind kind, std::initializer_list<Kind> kinds) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}
bool reduces(Kind kind) {
    return among(kind, {Kind::all_reduce, Kind::scatter_reduce, Kind::reduce});
}
bool rooted(Kind kind) {
    return among(kind, {Kind::broadcast, Kind::reduce, Kind::gather, Kind::scatter});
}

// Whether two ranks that make these as one and the same call disagree.
bool differ(const Call& one, const Call& other) {
    const Case &a = one.c, &b = other.c;
    if (a.kind != b.kind) return true;
    if (a.kind == Kind::barrier) return false;
    return a.type != b.type || a.count != b.count || (reduces(a.kind) && a.op != b.op) || (rooted(a.kind) && a.root != b.root);
}

}  // namespace

const char* fault_name(Fault fault) {
    constexpr const char* kNames[] = {"none",        "kill",           "exit",
                                      "stop",        "delay",          "late",
                                      "cut",         "corrupt_header", "corrupt_payload",
                                      "other_kind",  "other_type",     "other_op",
                                      "other_count", "other_root",     "skip",
                                      "extra",       "linger",         "abort",
                                      "leave"};
    return kNames[int(fault)];
}

const char* moment_name(Moment moment) {
    constexpr const char* kNames[] = {"before", "inside", "during", "outside"};
    return kNames[int(moment)];
}

bool Scene::harmless() const {
    return fault == Fault::none || fault == Fault::delay || fault == Fault::corrupt_payload || fault == Fault::linger;
}

std::optional<Call> Scene::instead(const Call& call) const {
    Call other = call;
    const bool plain = call.form == Form::collective;
    const Kind kind = call.c.kind;
    const bool data = !plain || kind != Kind::barrier;
    switch (fault) {
        case Fault::other_kind:
        case Fault::extra:
            if (!plain) return std::nullopt;
            if (kind == Kind::barrier) other.c.count = 1;
            other.c.kind = reduces(kind) ? Kind::all_gather : Kind::all_reduce;
            other.c.in_place = false;
            return other;
        case Fault::other_type:  // of the same size, so that nothing but the fingerprint can tell
            if (!data) return std::nullopt;
            other.c.type = call.c.type == ringFloat32 ? ringInt32 : ringFloat32;
            return other;
        case Fault::other_op:
            if (!plain || !reduces(kind)) return std::nullopt;
            other.c.op = call.c.op == Op::sum ? Op::max : Op::sum;
            return other;
        case Fault::other_count:
            if (!data) return std::nullopt;
            ++other.c.count;
            return other;
        case Fault::other_root:
            if (!plain || !rooted(kind)) return std::nullopt;
            other.c.root = (call.c.root + 1) % ranks;
            return other;
        default:
            return std::nullopt;
    }
}

bool Scene::possible() const {
    const Call &here = call(at), &next = call(at + 1);
    const bool tcp = std::strcmp(path.transport, "tcp") == 0;
    if (rank >= ranks || ranks < 2 || processes() < 2) return false;
    switch (fault) {
        case Fault::corrupt_header:
        case Fault::corrupt_payload:
            // In some call the rank must send a frame, whichever rank it is and whatever the plan.
            return tcp && std::any_of(calls.begin(), calls.end(), [](const Call& call) {
                       const Kind kind = call.c.kind;
                       return call.form == Form::collective &&
                              (kind == Kind::all_reduce || kind == Kind::scatter_reduce || kind == Kind::all_gather ||
                               kind == Kind::all_to_all || kind == Kind::barrier);
                   });
        case Fault::skip:
            return here.numbered() && next.numbered() && differ(here, next);
        case Fault::extra:
            return here.numbered() && instead(here);
        case Fault::other_kind:
        case Fault::other_type:
        case Fault::other_op:
        case Fault::other_count:
        case Fault::other_root:
            return instead(here).has_value();
        default:
            return true;
    }
}

std::string Scene::text() const {
    std::string what = fmt::format("{} {} call {}", fault_name(fault), moment_name(moment), at);
    if (moment == Moment::during || moment == Moment::outside) what += fmt::format(" (after {} us)", after_us);
    if (fault == Fault::corrupt_header || fault == Fault::corrupt_payload) what += fmt::format(" (byte {})", byte);
    return fmt::format("{} ranks, {} per process, {}{}, {}: rank {} suffers {}: {}", ranks, per_process, path.name,
                       hosts ? ", several hosts" : "", algorithm, rank, what, call(at).text());
}

}  // namespace ringccl::test
