#include "call.h"

#include <cstring>
#include <vector>

#include "support/guarded.h"
#include "support/values.h"

namespace ringccl::test {
namespace {

// run_case() speaks for people; the code is in its words.
Answer answer_of(const Verdict& verdict) {
    if (verdict) return {};
    const std::string words = verdict.message();
    for (int code = ringUnhandledCudaError; code <= ringMismatch; ++code)
        if (words.find(std::string(" gave ") + ringGetErrorString(ringResult_t(code))) != words.npos)
            return {ringResult_t(code), ringGetLastError(nullptr), {}};
    return {ringSuccess, {}, words};
}

// A message of `call.c`, with guard bands.
struct Message {
    explicit Message(const Call& call, size_t parts = 1)
        : count(call.c.count), type(call.c.type), data(parts * count * type_size(type), call.c.shift) {}

    size_t bytes() const { return count * type_size(type); }
    void put(int rank, Op op = Op::none) { put_inputs(data.data(), type, op, rank, 0, count); }
    // Whether part `part` is what `rank` put.
    bool is_from(int rank, size_t part = 0) {
        std::vector<std::byte> want(bytes());
        put_inputs(want.data(), type, Op::none, rank, 0, count);
        return want.empty() || std::memcmp(data.data() + part * bytes(), want.data(), bytes()) == 0;
    }
    bool is_reduced(Op op, int size) {
        std::vector<std::byte> want(bytes());
        put_results(want.data(), type, op, size, 0, count);
        return want.empty() || std::memcmp(data.data(), want.data(), bytes()) == 0;
    }

    size_t count;
    ringDataType_t type;
    Guarded data;
};

ringResult_t finish(const Member& me, ringResult_t result) {
    if (result == ringSuccess && me.stream) return ringStreamSynchronize(static_cast<ringStream_t>(me.stream));
    return result;
}

Answer concluded(ringResult_t result) {
    if (result == ringSuccess) return {};
    return {result, ringGetLastError(nullptr), {}};
}

Answer checked(bool right, const char* what, const Call& call, const Member& me) {
    if (right) return {};
    return {ringSuccess, {}, fmt::format("{}, rank {} of {}: {} is wrong", call.text(), me.rank, me.size, what)};
}

Answer relay(const Member& me, const Call& call) {
    Message message(call);
    message.put(0);
    ringResult_t result = ringSuccess;
    if (me.rank != 0) {
        std::memset(message.data.data(), 0, message.bytes());
        result = ringRecv(message.data.data(), message.count, message.type, me.rank - 1, me.comm, me.stream);
    }
    if (result == ringSuccess && me.rank + 1 < me.size)
        result = ringSend(message.data.data(), message.count, message.type, me.rank + 1, me.comm, me.stream);
    if (Answer answer = concluded(finish(me, result)); answer.code != ringSuccess) return answer;
    return checked(message.is_from(0) && message.data.intact(), "what was received", call, me);
}

struct Exchange {
    Exchange(const Member& me, const Call& call)
        : to((me.rank + 1) % me.size), from((me.rank + me.size - 1) % me.size), out(call), in(call) {
        out.put(me.rank);
    }
    ringResult_t start(const Member& me) {
        ringResult_t sent = ringSend(out.data.data(), out.count, out.type, to, me.comm, me.stream);
        ringResult_t received = ringRecv(in.data.data(), in.count, in.type, from, me.comm, me.stream);
        return sent == ringSuccess ? received : sent;
    }
    bool right() { return in.is_from(from) && in.data.intact(); }

    int to, from;
    Message out, in;
};

Answer exchange(const Member& me, const Call& call) {
    Exchange messages(me, call);
    ringGroupStart();
    messages.start(me);
    if (Answer answer = concluded(finish(me, ringGroupEnd())); answer.code != ringSuccess) return answer;
    return checked(messages.right(), "what was received", call, me);
}

Answer group(const Member& me, const Call& call) {
    Exchange messages(me, call);
    const Op op = call.c.op == Op::premul ? Op::sum : call.c.op;
    Message reduced(call), mine(call), all(call, me.size);
    reduced.put(me.rank, op);
    mine.put(me.rank);
    ringGroupStart();
    ringAllReduce(reduced.data.data(), reduced.data.data(), reduced.count, reduced.type, public_op(op), me.comm, me.stream);
    messages.start(me);
    ringAllGather(mine.data.data(), all.data.data(), mine.count, mine.type, me.comm, me.stream);
    if (Answer answer = concluded(finish(me, ringGroupEnd())); answer.code != ringSuccess) return answer;
    bool gathered = all.data.intact();
    for (int rank = 0; rank < me.size; ++rank) gathered = gathered && all.is_from(rank, rank);
    if (!gathered) return checked(false, "what was gathered", call, me);
    if (!messages.right()) return checked(false, "what was received", call, me);
    return checked(reduced.is_reduced(op, me.size) && reduced.data.intact(), "the reduction", call, me);
}

}  // namespace

std::string Call::text() const {
    constexpr const char* kForms[] = {"", "a relay like ", "an exchange like ", "a group like "};
    return fmt::format("{}{}{}", kForms[int(form)], c.text(), streamed ? ", on a stream" : "");
}

Answer make_call(const Member& me, const Call& call) {
    Member caller = me;
    if (!call.streamed) caller.stream = nullptr;
    switch (call.form) {
        case Form::relay:
            return relay(caller, call);
        case Form::exchange:
            return exchange(caller, call);
        case Form::group:
            return group(caller, call);
        default:
            return answer_of(run_case(caller, call.c));
    }
}

}  // namespace ringccl::test
