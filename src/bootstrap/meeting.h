// The meeting point: where the ranks of a communicator join and exchange texts. A round is an all-gather through one thread;
// joining is the first round.
#pragma once

#include "base/status.h"
#include "bootstrap/listening.h"
#include "bootstrap/secret.h"

namespace ringccl {

// "to" in the hello of who dials a meeting point, which is no rank.
constexpr int kMeetingPoint = -1;

// Serves a meeting on `listening` in a thread of its own, which ends when every rank has joined and closed, or has been told a
// failure. If nobody ever comes it ends with the process, which it does not hold up.
Status start_meeting(Listening listening, const Secret& secret);

}  // namespace ringccl
