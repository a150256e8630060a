// Datagrams to a rank's unix socket: any bytes, any number of descriptors, and letters with a true digest.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "fuzz/fuzz.h"
#include "transports/p2p/courier.h"

namespace ringccl::fuzz {
namespace {

const Secret kSecret = {1, 2, 3};

struct Post {
    std::unique_ptr<Courier> courier;
    int from = -1;
    sockaddr_un to{};
    socklen_t length = 0;

    Post() {
        courier = Courier::open(kSecret, 0).take();
        from = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        to.sun_family = AF_UNIX;
        std::memcpy(to.sun_path + 1, courier->name().data(), courier->name().size());
        length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + courier->name().size());
    }

    void send(std::string bytes, int descriptors) {
        iovec part{bytes.data(), bytes.size()};
        alignas(cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))] = {};
        msghdr message{};
        message.msg_name = &to;
        message.msg_namelen = length;
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        if (descriptors > 0) {
            message.msg_control = control;
            message.msg_controllen = CMSG_SPACE(static_cast<size_t>(descriptors) * sizeof(int));
            cmsghdr* header = CMSG_FIRSTHDR(&message);
            header->cmsg_level = SOL_SOCKET;
            header->cmsg_type = SCM_RIGHTS;
            header->cmsg_len = CMSG_LEN(static_cast<size_t>(descriptors) * sizeof(int));
            for (int i = 0; i < descriptors; ++i)
                std::memcpy(CMSG_DATA(header) + static_cast<size_t>(i) * sizeof(int), &from, sizeof from);
        }
        ::sendmsg(from, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
};

// The number that the next descriptor would get: higher than before if some were left open.
int next_descriptor() {
    int probe = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(probe);
    return probe;
}

}  // namespace
}  // namespace ringccl::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace ringccl;
    using namespace ringccl::fuzz;
    static const bool quiet = ::setenv("RINGCCL_LOG", "off", 1) == 0;  // every forged letter would be logged
    must(quiet, "the log is off");
    static Post post;
    const int before = next_descriptor();
    Bytes bytes(data, size);
    bool sealed_all = true;
    for (int letters = 0; letters < 8 && !bytes.empty(); ++letters) {
        const uint8_t how = bytes.byte();
        const int descriptors = how % 16;
        std::string letter(bytes.take(how & 0x40 ? sizeof(Letter) : bytes.byte()));
        if (how & 0x40) {
            letter.resize(sizeof(Letter));
            Digest digest = keyed_digest(derive(kSecret, "courier"), letter + post.courier->name());
            letter.append(reinterpret_cast<const char*>(digest.data()), digest.size());
        } else {
            sealed_all = false;
        }
        post.send(letter, descriptors);
    }
    for (;;) {
        auto received = post.courier->receive();
        if (received.ok()) {
            must(sealed_all || size > 0, "an input was sent");
            for (auto& one : received.value())
                must(bool(one.descriptor) == (one.letter.kind != Letter::Kind::device_block),
                     "each letter has its descriptor, and one about a device's memory none");
            break;
        }
        // A letter of ours with more descriptors or fewer than its kind has.
        must(received.status().code() == ringSystemError, "a letter without its descriptor says so");
    }
    must(next_descriptor() == before, "no descriptor is left open");
    return 0;
}
