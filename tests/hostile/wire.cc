#include "wire.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "transports/tcp/frame.h"

namespace ringccl::test {
namespace {

std::atomic<bool> armed = false;
std::mutex mutex;  // over the next two
int wanted_byte = 0;
std::function<void()> on_damage;

int option(int fd, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    return getsockopt(fd, SOL_SOCKET, name, &value, &length) == 0 ? value : -1;
}

bool begins_a_frame(const msghdr& message) {
    if (message.msg_iovlen == 0 || message.msg_iov[0].iov_len < sizeof(FrameHeader)) return false;
    uint32_t magic = 0;
    std::memcpy(&magic, message.msg_iov[0].iov_base, sizeof magic);
    return magic == kFrameMagic;
}

// The first frame of the message: its header, and its payload if that is there. Several may follow.
size_t first_frame(const msghdr& message) {
    FrameHeader header;
    std::memcpy(&header, message.msg_iov[0].iov_base, sizeof header);
    return sizeof header + header.bytes;
}

std::vector<char> flat(const msghdr& message) {
    std::vector<char> bytes;
    for (size_t i = 0; i < message.msg_iovlen; ++i) {
        auto* begin = static_cast<const char*>(message.msg_iov[i].iov_base);
        bytes.insert(bytes.end(), begin, begin + message.msg_iov[i].iov_len);
    }
    return bytes;
}

}  // namespace

void corrupt_next_frame(int byte, std::function<void()> happened) {
    std::lock_guard lock(mutex);
    wanted_byte = byte;
    on_damage = std::move(happened);
    armed = true;
}

void cut_connections() {
    std::vector<int> open;  // first listed, then looked at: the listing has a descriptor of its own
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", gone))
        open.push_back(std::stoi(entry.path().filename().string()));
    for (int fd : open)
        if (option(fd, SO_PROTOCOL) == IPPROTO_TCP && option(fd, SO_ACCEPTCONN) == 0) shutdown(fd, SHUT_RDWR);
}

}  // namespace ringccl::test

extern "C" {

ssize_t __real_sendmsg(int fd, const msghdr* message, int flags);
ssize_t __wrap_sendmsg(int fd, const msghdr* message, int flags);

// A byte counts as sent only if the kernel has taken it; until then the damage stays armed.
ssize_t __wrap_sendmsg(int fd, const msghdr* message, int flags) {
    using namespace ringccl::test;
    if (!armed || !begins_a_frame(*message)) return __real_sendmsg(fd, message, flags);
    std::lock_guard lock(mutex);
    std::vector<char> bytes = flat(*message);
    const size_t at = wanted_byte;
    if (!armed || at >= std::min(bytes.size(), first_frame(*message))) return __real_sendmsg(fd, message, flags);
    if (on_damage) on_damage();
    bytes[at] ^= 0x20;
    iovec piece = {bytes.data(), bytes.size()};
    msghdr damaged = *message;
    damaged.msg_iov = &piece;
    damaged.msg_iovlen = 1;
    const ssize_t sent = __real_sendmsg(fd, &damaged, flags);
    if (sent > ssize_t(at)) armed = false;
    return sent;
}
}
