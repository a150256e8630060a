#include "transports/p2p/courier.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstring>

#include "trace/log.h"

namespace ringccl {
namespace {

struct Envelope {
    Letter letter;
    Digest digest;
};

// The digest covers the addressee, so that a letter to one rank is worth nothing at another.
Digest sign(const Secret& key, const std::string& to, const Letter& letter) {
    std::string message(reinterpret_cast<const char*>(&letter), sizeof letter);
    return keyed_digest(key, message + to);
}

sockaddr_un abstract_address(const std::string& name, socklen_t& length) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return address;
}

}  // namespace

Result<std::unique_ptr<Courier>> Courier::open(const Secret& secret, int rank) {
    std::unique_ptr<Courier> courier(new Courier);
    courier->key_ = derive(secret, "courier");
    courier->rank_ = rank;
    std::array<uint8_t, 16> random;
    RINGCCL_TRY(fill_random(random));
    courier->name_ = "ringccl-";
    for (uint8_t byte : random) courier->name_ += fmt::format("{:02x}", byte);

    courier->socket_.reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!courier->socket_) return system_failure(errno, "unix socket for passing descriptors");
    socklen_t length;
    sockaddr_un address = abstract_address(courier->name_, length);
    if (bind(courier->fd(), reinterpret_cast<sockaddr*>(&address), length) != 0)
        return system_failure(errno, "bind of the unix socket for passing descriptors");
    return courier;
}

Result<bool> Courier::send(const std::string& to, Letter letter, int descriptor) {
    letter.from = rank_;
    if (to.empty() || to.size() >= sizeof(sockaddr_un::sun_path) - 1)
        return failure(ringInternalError, "a peer's unix socket name has {} characters", to.size());
    Envelope envelope{letter, sign(key_, to, letter)};
    iovec part{&envelope, sizeof envelope};
    socklen_t length;
    sockaddr_un address = abstract_address(to, length);
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_name = &address;
    message.msg_namelen = length;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }

    ssize_t sent;
    do sent = sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0) return true;
    // ETOOMANYREFS: too many descriptors in flight between this user's processes; they drain as peers receive.
    if (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS) return false;
    return system_failure(errno, "passing a descriptor to another process of this host");
}

Result<std::vector<Courier::Received>> Courier::receive() {
    constexpr int kMostAtOnce = 64;  // strangers who go on sending must not keep us here
    std::vector<Received> letters;
    for (int number = 0; number < kMostAtOnce; ++number) {
        Envelope envelope{};
        iovec part{&envelope, sizeof envelope};
        alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        const ssize_t got = recvmsg(fd(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (got < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN) return letters;
            return system_failure(errno, "receiving a descriptor from another process of this host");
        }
        // Own every descriptor at once, so that a forged letter leaves none behind.
        std::vector<Fd> descriptors;
        for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
            if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
            const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (size_t i = 0; i < count; ++i) {
                int descriptor;
                std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof descriptor);
                descriptors.emplace_back(descriptor);
            }
        }
        if (got != sizeof envelope || !same_digest(envelope.digest, sign(key_, name_, envelope.letter))) {
            log().warn("a stranger's datagram of {} bytes reached this rank's unix socket and was dropped", got);
            continue;
        }
        const size_t expected = envelope.letter.kind == Letter::Kind::device_block ? 0 : 1;
        if (descriptors.size() != expected)
            return failure(ringSystemError, "rank {} passed a descriptor that this process could not receive{}",
                           envelope.letter.from,
                           (message.msg_flags & MSG_CTRUNC) ? ": its limit of open files is reached (ulimit -n)" : "");
        letters.push_back({envelope.letter, expected == 0 ? Fd() : std::move(descriptors.front())});
    }
    return letters;
}

}  // namespace ringccl
