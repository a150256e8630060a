#include "attacker.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "bootstrap/unique_id.h"

namespace ringccl::test {
namespace {

constexpr std::string_view kPrefix("ringccl\1", 8);

std::set<std::string> socket_inodes(pid_t process) {
    std::set<std::string> inodes;
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", process), gone)) {
        std::string target = std::filesystem::read_symlink(entry, gone).string();
        if (target.starts_with("socket:[")) inodes.insert(target.substr(8, target.size() - 9));
    }
    return inodes;
}

std::string forged_letter(const std::string& to, int number) {
    // The size and look of a letter of a rank; the digest is that of another secret.
    std::string letter(24, '\0');
    letter[0] = static_cast<char>(number % 3);
    letter[4] = static_cast<char>(number % 4);
    letter[17] = 1;
    Digest digest = keyed_digest(Secret{}, letter + to);
    return letter + std::string(reinterpret_cast<const char*>(digest.data()), digest.size());
}

// What there is to attack, looked up by one thread for all.
class Targets {
public:
    Targets(const Crew& crew, int ranks) : crew_(crew), ranks_(ranks) {}

    void refresh() {
        std::vector<uint16_t> ports;
        std::vector<std::string> couriers;
        for (int rank = 0; rank < ranks_; ++rank) {
            const pid_t pid = crew_->pids[rank];
            if (pid == 0) continue;
            std::ranges::copy(ports_of(pid), std::back_inserter(ports));
            std::ranges::copy(couriers_of(pid), std::back_inserter(couriers));
        }
        std::lock_guard lock(mutex_);
        ports_ = ports;
        couriers_ = couriers;
    }
    std::vector<uint16_t> ports() const {
        std::lock_guard lock(mutex_);
        return ports_;
    }
    std::vector<std::string> couriers() const {
        std::lock_guard lock(mutex_);
        return couriers_;
    }

private:
    const Crew& crew_;
    const int ranks_;
    mutable std::mutex mutex_;
    std::vector<uint16_t> ports_;
    std::vector<std::string> couriers_;
};

void attack(Attack how, uint16_t port, std::vector<Fd>& silent, const Secret& meeting) {
    Fd fd = knock(port, source_of(how));
    if (!fd) return;
    switch (how) {
        case Attack::close:
            return;
        case Attack::seven_bytes:
            write_bytes(fd, "ringccl");
            return;
        case Attack::http:
            write_bytes(fd, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
            return;
        case Attack::noise:
            write_bytes(fd, std::string(1 << 20, '\x5a'));
            return;
        case Attack::silence:
            silent.push_back(std::move(fd));
            return;
        case Attack::replay:
            // What a rank said in another connection: right in everything but the nonce that it answers.
            write_bytes(fd, kPrefix);
            write_bytes(fd, claim(meeting, std::string(32, 'a'), {}) + '\6');
            read_bytes(fd, 72);
            return;
    }
}

}  // namespace

std::string source_of(Attack attack) {
    return fmt::format("127.0.0.{}", 10 + static_cast<int>(attack));
}

std::vector<uint16_t> ports_of(pid_t process) {
    std::set<std::string> inodes = socket_inodes(process);
    std::vector<uint16_t> ports;
    for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
        std::ifstream file(table);
        std::string line;
        std::getline(file, line);  // headings
        while (std::getline(file, line)) {
            // "sl: address:port address:port state queues timer retransmits uid timeout inode ..."
            std::istringstream fields(line);
            std::string number, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
            fields >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >> inode;
            if (state == "0A" && inodes.contains(inode))
                ports.push_back(static_cast<uint16_t>(std::stoul(local.substr(local.rfind(':') + 1), nullptr, 16)));
        }
    }
    return ports;
}

std::vector<std::string> couriers_of(pid_t process) {
    std::set<std::string> inodes = socket_inodes(process);
    std::vector<std::string> names;
    std::ifstream file("/proc/net/unix");
    for (std::string line; std::getline(file, line);) {
        // "Num RefCount Protocol Flags Type St Inode @name"
        std::istringstream fields(line);
        std::string number, count, protocol, flags, type, state, inode, name;
        fields >> number >> count >> protocol >> flags >> type >> state >> inode >> name;
        if (name.starts_with("@ringccl-") && inodes.contains(inode)) names.push_back(name.substr(1));
    }
    return names;
}

Fd knock(uint16_t port, const std::string& from) {
    Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    timeval limit{0, 200000};
    setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    int yes = 1;
    setsockopt(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    inet_pton(AF_INET, from.c_str(), &at.sin_addr);
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) return {};
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) return {};
    return fd;
}

std::string read_bytes(const Fd& fd, size_t bytes) {
    std::string text(bytes, '\0');
    size_t got = 0;
    for (ssize_t now; got < bytes && (now = recv(fd.get(), text.data() + got, bytes - got, 0)) > 0;)
        got += static_cast<size_t>(now);
    text.resize(got);
    return text;
}

bool write_bytes(const Fd& fd, std::string_view bytes) {
    while (!bytes.empty()) {
        ssize_t sent = send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
}

std::string claim(const Secret& key, std::string_view a, const Introduction& hello) {
    std::string words;
    for (uint32_t word : {hello.purpose, hello.from, hello.to, hello.lane, hello.index})
        for (int shift : {24, 16, 8, 0}) words += static_cast<char>(word >> shift);
    const std::string d(32, 'd');
    Digest proof = keyed_digest(key, std::string("dialer").append(kPrefix).append(a) + d + words);
    return words + d + std::string(reinterpret_cast<const char*>(proof.data()), proof.size());
}

bool send_letter(const std::string& to, std::string_view bytes, int descriptors) {
    Fd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, to.data(), std::min(to.size(), sizeof address.sun_path - 1));
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    std::vector<char> control(CMSG_SPACE(static_cast<size_t>(descriptors) * sizeof(int)));
    msghdr message{};
    message.msg_name = &address;
    message.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + to.size());
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptors > 0) {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(static_cast<size_t>(descriptors) * sizeof(int));
        for (int i = 0, own = fd.get(); i < descriptors; ++i)
            std::memcpy(CMSG_DATA(header) + static_cast<size_t>(i) * sizeof(int), &own, sizeof own);
    }
    return sendmsg(fd.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

Verdict attack_all(const Crew& crew, int ranks, const Campaign& campaign) {
    constexpr size_t kSilent = 50, kMostSilent = 600;
    constexpr int kDescriptors[] = {0, 1, 2, 16, 253};  // the kernel takes no more than 253
    if (!await([&] { return crew->id_state != 0; }, 30000)) return bad("there was no id");
    auto invitation = unpack(crew->id);
    const Secret meeting = invitation.ok() ? derive(invitation.value().secret, "meeting") : Secret{};
    Targets targets(crew, ranks);
    auto repeat = [&](auto once) {
        return [&, once]() mutable {
            while (crew->ended < ranks) {
                once();
                usleep(static_cast<useconds_t>(campaign.pause_us));
            }
        };
    };
    auto attacking = [&](std::vector<Attack> kinds) {
        return repeat([&, kinds] {
            std::vector<Fd> let_go;
            for (uint16_t port : targets.ports())
                for (Attack kind : kinds) {
                    attack(kind, port, let_go, meeting);
                    ++crew->attacks[crew.phase(ranks)];
                }
        });
    };
    std::vector<Fd> silent;
    std::map<uint16_t, size_t> staring;  // by port: how many
    auto stare = [&] {
        targets.refresh();
        for (uint16_t port : targets.ports()) {
            for (size_t& there = staring[port]; there < kSilent && silent.size() < kMostSilent; ++there) {
                const size_t before = silent.size();
                attack(Attack::silence, port, silent, meeting);
                if (silent.size() == before) break;  // turned away by a busy machine: again later
            }
        }
    };
    auto post = [&, number = 0]() mutable {
        for (const std::string& name : targets.couriers()) {
            ++number;
            const std::string bytes = number % 3 == 0 ? "garbage" : forged_letter(name, number);
            if (send_letter(name, bytes, kDescriptors[number % std::size(kDescriptors)])) ++crew->letters[crew.phase(ranks)];
        }
    };
    targets.refresh();
    std::vector<std::thread> threads;
    threads.emplace_back(repeat(stare));
    threads.emplace_back(attacking({Attack::close, Attack::seven_bytes, Attack::http}));
    threads.emplace_back(attacking({Attack::noise}));
    threads.emplace_back(attacking({Attack::replay}));
    if (campaign.letters) threads.emplace_back(repeat(post));
    for (std::thread& thread : threads) thread.join();
    return good();
}

}  // namespace ringccl::test
