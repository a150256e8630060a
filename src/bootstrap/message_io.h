// Sends and receives messages.
#pragma once

#include "bootstrap/loop.h"
#include "bootstrap/message.h"

namespace ringccl {

// ringInvalidArgument: the frame is larger than kMostMessageBytes. ringRemoteError: the connection broke.
awaitable<Status> send_message(Socket& socket, Frame frame);

// ringRemoteError: the connection was closed or broke, or what came is no message; the text goes after the sender's name.
awaitable<Result<nlohmann::json>> receive_message(Socket& socket);

}  // namespace ringccl
