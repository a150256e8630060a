// Descriptors that a forked child must not keep. A child that outlives its parent (a data loader of a rank that is killed)
// would hold the lifelines' other ends open and so hide the parent's death.
#pragma once

namespace ringccl {

// From here on a forked child closes its copy of `fd`, without shutdown: the parent's stays as it is. Lock-free, since a fork
// may come at any moment; programs started by exec need no help, for the sockets are close-on-exec. Numbers from 2^20 on are
// not remembered.
void close_in_children(int fd);
// Before the descriptor is closed and its number given to somebody else.
void leave_to_children(int fd);

}  // namespace ringccl
