// The receiving direction of a TCP link: frames come in on any of the link's sockets, payloads go straight into the landings,
// and the slices are shown in order.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "transports/tcp/frame.h"
#include "transports/tcp/socket.h"
#include "transports/transport.h"

namespace ringccl {

class TcpReceiver final : public RecvLink {
public:
    explicit TcpReceiver(std::span<const TcpSocket> sockets);  // which outlive this

    void post(std::byte* landing, size_t bytes) override;
    Taken take(View& view) override;
    void release() override {}  // a taken slice is in the engine's own memory
    const Status& status() const override { return status_; }

    // Whether a posted slice has not fully arrived.
    bool waiting() const { return filled_ != posted_ && status_.ok(); }
    // Reads what is there, up to about one slice a socket: the engine works on it while it is warm in the cache. True if
    // anything came.
    bool pump();
    // Whether bytes on this socket could bring the link on.
    bool wants(size_t socket) const { return waiting() && readable(stripes_[socket]); }
    void add_to(Transport::Counters& counters) const { counters.bytes_received += bytes_; }

private:
    // A small message comes in one read with its header; of a large one this much is copied once more.
    static constexpr size_t kInputBytes = 4096;

    struct Slot {
        std::byte* landing = nullptr;
        size_t bytes = 0;
        bool claimed = false;  // a socket has brought the header
        bool filled = false;
        View view;
    };
    enum class Stage : uint8_t {
        header,
        paused,   // the header is here, its slice has no landing yet: read no further
        payload,  // into a landing
        skip,     // payload that does not fit the landing: dropped
        ended     // the peer closed between two frames
    };
    struct Stripe {
        const TcpSocket* socket = nullptr;
        Stage stage = Stage::header;
        FrameHeader header;
        std::byte* into = nullptr;  // in stage payload: where the next byte goes
        size_t left = 0;            // in stages payload and skip: bytes to come
        uint64_t next = 0;          // slice number that a lone socket must bring
        size_t begin = 0, end = 0;  // of what is in `input`
        std::array<std::byte, kInputBytes> input;
    };

    static bool readable(const Stripe& stripe) { return stripe.stage != Stage::paused && stripe.stage != Stage::ended; }
    Slot& slot(uint64_t number) { return slots_[number % kLinkDepth]; }
    bool read(Stripe& stripe);
    void digest(Stripe& stripe);
    bool plausible(const Stripe& stripe) const;
    void reject(const Stripe& stripe);
    void claim(Stripe& stripe);
    void fill(const View& view, uint64_t number);
    std::string expected() const;

    std::array<Slot, kLinkDepth> slots_;
    std::vector<Stripe> stripes_;
    uint64_t posted_ = 0, filled_ = 0, taken_ = 0;  // filled_ counts in any order
    uint64_t bytes_ = 0;
    Status status_;
};

}  // namespace ringccl
