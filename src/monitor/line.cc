#include "monitor/line.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include "bootstrap/message_io.h"
#include "monitor/descendants.h"
#include "trace/log.h"

namespace ringccl {
namespace {

using std::chrono::milliseconds;

// The kernel's own watch over hosts and networks that vanish: it also sees what ends while nobody beats.
void watch(int fd, milliseconds silence) {
    const auto set = [fd](int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    if (silence.count() == 0) return;
    const milliseconds patience = std::clamp<milliseconds>(silence, std::chrono::seconds(1), std::chrono::hours(24));
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(patience.count()));
    const int seconds = static_cast<int>(std::chrono::ceil<std::chrono::seconds>(patience / 4).count());
    set(IPPROTO_TCP, TCP_KEEPIDLE, std::min(seconds, 32767));
    set(IPPROTO_TCP, TCP_KEEPINTVL, std::min(seconds, 32767));
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace

Line::Line(Socket socket, milliseconds silence) : socket_(std::move(socket)) {
    asio::error_code error;
    socket_.non_blocking(true, error);
    watch(socket_.native_handle(), silence);
    close_in_children(socket_.native_handle());
}

Line::~Line() {
    close();
}

void Line::start(Hear hear, Ended ended) {
    hear_ = std::move(hear);
    ended_ = std::move(ended);
    asio::co_spawn(socket_.get_executor(), listen(shared_from_this()), asio::detached);
}

awaitable<void> Line::listen(std::shared_ptr<Line> self) {
    for (;;) {
        std::string how;
        try {
            Result<nlohmann::json> message = co_await receive_message(self->socket_);
            if (!self->hear_) co_return;  // closed meanwhile
            if (message.ok()) {
                self->hear_(message.value());
                if (!self->hear_) co_return;
                continue;
            }
            if (message.status().text() != "closed its connection") how = message.status().text();
        } catch (const std::exception& error) {
            log().error("a lifeline cannot be read any more: {}", error.what());
        }
        Ended ended = self->ended_;
        self->close();
        if (ended) ended(how);
        co_return;
    }
}

void Line::say(const nlohmann::json& message) {
    if (!socket_.is_open() || finished_) return;
    out_.push_back(framed(message));
    if (!blocked_) flush();
}

void Line::flush() {
    while (!out_.empty() && socket_.is_open()) {
        asio::error_code error;
        const std::string& bytes = *out_.front();
        written_ += socket_.write_some(asio::buffer(bytes.data() + written_, bytes.size() - written_), error);
        if (error == asio::error::would_block || error == asio::error::try_again) {
            blocked_ = true;
            socket_.async_wait(Socket::wait_write, [self = shared_from_this()](asio::error_code cancelled) {
                self->blocked_ = false;
                if (!cancelled) self->flush();
            });
            return;
        }
        if (error) {
            // Reading tells how it ended, after the words that were sent before.
            out_.clear();
            written_ = 0;
            return;
        }
        if (written_ < bytes.size()) continue;
        out_.pop_front();
        written_ = 0;
    }
    asio::error_code ignored;
    if (finished_ && socket_.is_open()) socket_.shutdown(Socket::shutdown_send, ignored);
}

void Line::finish() {
    if (std::exchange(finished_, true) || !socket_.is_open()) return;
    if (!blocked_) flush();
}

// shutdown(), since a child that was forked just before the descriptor was registered may hold a copy. What has come in is
// dropped first: the kernel would answer it with a reset, which can destroy what was said last.
void Line::close() {
    hear_ = nullptr;
    ended_ = nullptr;
    if (!socket_.is_open()) return;
    asio::error_code error;
    socket_.shutdown(Socket::shutdown_send, error);
    char dropped[4096];
    while (!error && socket_.read_some(asio::buffer(dropped), error) > 0) {
    }
    leave_to_children(socket_.native_handle());
    socket_.close(error);
}

}  // namespace ringccl
