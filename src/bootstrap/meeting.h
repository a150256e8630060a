// The meeting point: where the ranks of a communicator join and exchange texts. A round is an all-gather through one thread;
// joining is the first round.
#pragma once

#include "base/deadline.h"
#include "base/status.h"
#include "bootstrap/listening.h"
#include "bootstrap/secret.h"

namespace ringccl {

// "to" in the hello of who dials a meeting point, which is no rank. Several meetings of one job have one secret and different
// calls.
constexpr int meeting_point(uint8_t call) {
    return -1 - call;
}

// Serves a meeting on `listening` in a thread of its own, which ends when every rank has joined and closed, or has been told a
// failure. If nobody ever comes it ends with the process, which it does not hold up.
Status start_meeting(Listening listening, const Secret& secret, uint8_t call);

// Waits until the meeting of this secret, if this process serves it, has ended: until then others may not have the last answer,
// and would lose it with the process. Once `stop` is set, for a moment only: one of them may be stopped, and never take it.
void await_meeting_end(const Secret& secret, Deadline deadline, const std::atomic<bool>& stop);

}  // namespace ringccl
