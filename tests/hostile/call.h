// One call, or a few that belong together, with data that has one right result: what the ranks of a hostile scene make.
#pragma once

#include <optional>
#include <string>

#include "support/case.h"

namespace ringccl::test {

enum class Form {
    collective,  // the case as it is
    relay,       // every rank receives from the one before it and sends that on to the next, call by call
    exchange,    // every rank sends to the next and receives from the one before it, in one group
    group        // an allReduce, an allGather and an exchange in one group
};

struct Call {
    Form form = Form::collective;
    Case c;
    bool streamed = false;

    // Whether all ranks make it at once, as one or several collectives that are numbered.
    bool numbered() const { return form == Form::collective; }
    std::string text() const;
};

// What a call came to.
struct Answer {
    ringResult_t code = ringSuccess;
    std::string text;   // the library's, if it failed
    std::string wrong;  // what must not be, whether it failed or not: data, guard bands
};

// Makes the call on this rank; `me.stream` is used if the call is streamed.
Answer make_call(const Member& me, const Call& call);

}  // namespace ringccl::test
