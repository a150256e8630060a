#include "bootstrap/message_io.h"

#include <array>
#include <asio/read.hpp>
#include <asio/write.hpp>

namespace ringccl {

awaitable<Status> send_message(Socket& socket, Frame frame) {
    if (frame->size() - 4 > kMostMessageBytes)
        co_return failure(ringInvalidArgument, "a message of {} bytes is larger than the {} that ranks take", frame->size() - 4,
                          kMostMessageBytes);
    asio::error_code error;
    co_await asio::async_write(socket, asio::buffer(*frame), asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return failure(ringRemoteError, "{}", error.message());
    co_return Status();
}

awaitable<Result<nlohmann::json>> receive_message(Socket& socket) {
    asio::error_code error;
    std::array<uint8_t, 4> head;
    co_await asio::async_read(socket, asio::buffer(head), asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::eof) co_return failure(ringRemoteError, "closed its connection");
    if (error) co_return failure(ringRemoteError, "lost its connection ({})", error.message());
    size_t length = static_cast<size_t>(head[0]) << 24 | head[1] << 16 | head[2] << 8 | head[3];
    if (length > kMostMessageBytes) co_return failure(ringRemoteError, "announced a message of {} bytes", length);

    std::string bytes(length, '\0');
    co_await asio::async_read(socket, asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return failure(ringRemoteError, "lost its connection inside a message ({})", error.message());
    co_return parse_message(bytes);
}

}  // namespace ringccl
