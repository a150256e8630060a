// What two processes can do over one TCP connection, without a library: each sums one half of the vector, while it drains the
// socket, and sends what it has summed at once. What is small goes whole, both ways.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include "contender.h"

namespace contest {
namespace {

constexpr size_t kWhole = 8192;    // bytes up to which the vector is not halved
constexpr size_t kPiece = 262144;  // bytes that are taken from the socket at a time

class Exchange final : public Contender {
public:
    explicit Exchange(const World& world) : landing_(kPiece / sizeof(float)) {
        rank_ = world.rank;
        size_ = world.size;
        connect_through(world.folder + "/port");
        const int on = 1;
        setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    ~Exchange() override { close(socket_); }

    bool can(Move move, Type type) const override { return move == Move::all_reduce && type == Type::float32 && size_ == 2; }

    void perform(Move, Type, const std::byte* send, std::byte* recv, size_t count) override {
        const auto* in = reinterpret_cast<const float*>(send);
        auto* out = reinterpret_cast<float*>(recv);
        if (count * sizeof(float) <= kWhole) return reduce(in, out, in, count, nullptr, 0, false);
        const size_t half = count / 2, mine = rank_ == 0 ? 0 : half, theirs = rank_ == 0 ? half : 0;
        const size_t my_count = rank_ == 0 ? half : count - half, their_count = count - my_count;
        reduce(in + mine, out + mine, in + theirs, my_count, out + theirs, their_count, true);
    }

    void share(void* data, size_t bytes) override {
        char back = 0;
        if (rank_ == 0) {
            put_all(data, bytes);
            take_all(&back, 1);
        } else {
            take_all(data, bytes);
            put_all(&back, 1);
        }
    }

private:
    // Sends `theirs`, and takes as many floats as there are in `in`, which are added to it into `out`. In halves: then sends
    // `out` as far as it has come, and takes the other half into `result`.
    void reduce(const float* in, float* out, const float* theirs, size_t count, float* result, size_t result_count,
                bool halves) {
        const size_t to_send = (halves ? result_count : count) * sizeof(float);
        const size_t to_sum = count * sizeof(float), to_take = result_count * sizeof(float);
        size_t sent = 0, summed_sent = 0, summed = 0, taken = 0, kept = 0;
        auto* landing = reinterpret_cast<char*>(landing_.data());
        while (sent < to_send || summed < to_sum || (halves && (summed_sent < to_sum || taken < to_take))) {
            bool moved = false;
            if (sent < to_send)
                moved |= put(reinterpret_cast<const char*>(theirs) + sent, to_send - sent, sent);
            else if (halves && summed_sent < summed)
                moved |= put(reinterpret_cast<const char*>(out) + summed_sent, summed - summed_sent, summed_sent);
            if (summed < to_sum) {
                size_t got = 0;
                if (take(landing + kept, std::min(kPiece, to_sum - summed) - kept, got)) {
                    moved = true;
                    kept += got;
                    const size_t whole = kept / sizeof(float), at = summed / sizeof(float);
                    for (size_t i = 0; i < whole; ++i) out[at + i] = in[at + i] + landing_[i];
                    summed += whole * sizeof(float);
                    std::memmove(landing, landing + whole * sizeof(float), kept %= sizeof(float));
                }
            } else if (halves && taken < to_take) {
                moved |= take(reinterpret_cast<char*>(result) + taken, to_take - taken, taken);
            }
            if (!moved && ++idle_ % 1024 == 0) wait(sent < to_send || (halves && summed_sent < summed));
        }
    }

    bool put(const char* from, size_t bytes, size_t& counter) {
        const ssize_t done = ::send(socket_, from, std::min(bytes, kPiece), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (done < 0 && errno != EAGAIN) give_up("send");
        counter += size_t(std::max<ssize_t>(done, 0));
        return done > 0;
    }
    bool take(char* to, size_t bytes, size_t& counter) {
        const ssize_t done = ::recv(socket_, to, bytes, MSG_DONTWAIT);
        if (done == 0 || (done < 0 && errno != EAGAIN)) give_up("recv");
        counter += size_t(std::max<ssize_t>(done, 0));
        return done > 0;
    }
    void wait(bool to_send) const {
        pollfd one{socket_, static_cast<short>(POLLIN | (to_send ? POLLOUT : 0)), 0};
        poll(&one, 1, 1000);
    }
    void put_all(const void* data, size_t bytes) {
        for (size_t done = 0; done < bytes;) put(static_cast<const char*>(data) + done, bytes - done, done);
    }
    void take_all(void* data, size_t bytes) {
        for (size_t done = 0; done < bytes;) take(static_cast<char*>(data) + done, bytes - done, done);
    }

    void connect_through(const std::string& file) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof address;
        socket_ = socket(AF_INET, SOCK_STREAM, 0);
        if (rank_ == 0) {
            if (bind(socket_, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(socket_, 1) != 0) give_up("listen");
            getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length);
            std::ofstream(file + ".part") << address.sin_port << '\n';
            std::rename((file + ".part").c_str(), file.c_str());
            const int listening = socket_;
            socket_ = accept(listening, nullptr, nullptr);
            close(listening);
            return;
        }
        while (!(std::ifstream(file) >> address.sin_port)) usleep(1000);
        if (connect(socket_, reinterpret_cast<sockaddr*>(&address), length) != 0) give_up("connect");
    }

    int socket_ = -1;
    unsigned idle_ = 0;
    std::vector<float> landing_;
};

}  // namespace

const bool kHasLauncher = false;

std::unique_ptr<Contender> make_contender(const World& world) {
    if (world.size > 2) give_up("two ranks, no more");
    return std::make_unique<Exchange>(world);
}

}  // namespace contest
