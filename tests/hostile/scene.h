// One job that something is done to: its ranks, what they call, and which rank suffers which fault when.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "call.h"
#include "support/environment.h"

namespace ringccl::test {

enum class Fault {
    none,
    kill,             // SIGKILL
    exit,             // the process ends by exit(), its communicator not destroyed
    stop,             // SIGSTOP; SIGCONT when all others have their answer
    delay,            // comes late, but in time
    late,             // comes when the others' deadline has passed
    cut,              // all TCP connections of its process are shut down
    corrupt_header,   // one byte of a frame's header is another on the wire
    corrupt_payload,  // one byte of user data is
    other_kind,       // calls something else than the others
    other_type,
    other_op,
    other_count,
    other_root,
    skip,    // leaves one call out
    extra,   // makes one call more, in the middle
    linger,  // makes one call more when the others have finished
    abort,   // ringCommAbort
    leave    // ringCommDestroy, while the others go on
};
inline constexpr Fault kFaults[] = {
    Fault::none,       Fault::kill,           Fault::exit,       Fault::stop,       Fault::delay,           Fault::late,
    Fault::cut,        Fault::corrupt_header, Fault::other_kind, Fault::other_type, Fault::corrupt_payload, Fault::other_op,
    Fault::other_root, Fault::other_count,    Fault::skip,       Fault::extra,      Fault::abort,           Fault::linger,
    Fault::leave};

const char* fault_name(Fault fault);

// When a fault that is an event happens.
enum class Moment {
    before,  // in place of the call, on the thread that would make it
    inside,  // the rank waits in the call, for the others have not come yet; by a second thread of its process
    during,  // some time after it has begun the call that all make; by a second thread
    outside  // the same, but by another process
};
const char* moment_name(Moment moment);

struct Scene {
    int ranks = 3;
    int per_process = 1;  // ranks that are threads of one process
    Path path = kMemfd;
    const char* algorithm = "auto";
    bool hosts = false;            // every two processes believe that they are a host of their own
    std::vector<Call> calls = {};  // made again and again, until there is an error
    Fault fault = Fault::none;
    Moment moment = Moment::before;
    int rank = 0;      // that suffers
    int at = 1;        // number of the call at which it does
    int after_us = 0;  // with during and outside
    int byte = 0;      // that is corrupted, from the frame's first
    int timeout_ms = 30000;
    int heartbeat_ms = 30000;
    int bound_ms = 10000;  // generous: machines are busy. What is promised is measured elsewhere
    bool shrink = false;   // the others make a smaller communicator afterwards, and use it

    int processes() const { return (ranks + per_process - 1) / per_process; }
    int process_of(int of) const { return of / per_process; }
    // Whether this rank has the fault in its process.
    bool beside(int of) const { return process_of(of) == process_of(rank); }
    const Call& call(int number) const { return calls[number % calls.size()]; }
    static Call needs_all() { return {.c = {.count = 100}}; }  // that no rank can finish alone

    // Whether the fault ends the process.
    bool deadly() const { return fault == Fault::kill || fault == Fault::exit; }
    // Whether the rank makes calls that differ from the others' from `at` on.
    bool disagrees() const { return fault >= Fault::other_kind && fault <= Fault::extra; }
    // Whether every rank but the suffering one makes calls() once and is content.
    bool harmless() const;
    // Whether the rank is no longer with the others, who are to go on without it.
    bool excludes(int of) const { return deadly() || fault == Fault::stop || fault == Fault::cut ? beside(of) : of == rank; }
    // What the suffering rank calls in place of `call`, if its fault is to call something else and `call` allows it.
    std::optional<Call> instead(const Call& call) const;
    // Whether the fault can happen in a scene like this.
    bool possible() const;

    std::string text() const;
};

}  // namespace ringccl::test
