// Damage to what goes over TCP. The test programs are linked with --wrap=sendmsg, so that every frame passes by here.
#pragma once

#include <functional>

namespace ringccl::test {

// From now on: byte `byte` of the next data frame that this process sends, counted from the frame's header, is another one on
// the wire. Once. `happened` is called just before it goes out. A frame that has no such byte passes.
void corrupt_next_frame(int byte, std::function<void()> happened);

// Shuts down every TCP connection of this process in both directions. Listening sockets stay.
void cut_connections();

}  // namespace ringccl::test
