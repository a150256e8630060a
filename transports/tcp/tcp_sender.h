// The sending direction of a TCP link: a queue of up to kLinkDepth slices, each written whole to one of the link's sockets,
// whichever can take it.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "transports/tcp/frame.h"
#include "transports/tcp/socket.h"
#include "transports/transport.h"

namespace ringccl {

class TcpSender final : public SendLink {
public:
    explicit TcpSender(std::span<const TcpSocket> sockets);  // which outlive this

    // The kernel copies, whatever the memory.
    bool takes(const Source&) const override { return true; }
    bool ready() override { return status_.ok() && offered_ - taken_ < kLinkDepth; }
    // Writes at once what the sockets take: a small slice is on its way when this returns.
    void offer(const Fingerprint& print, const Source& source) override;
    uint64_t offered() const override { return offered_; }
    uint64_t taken() override { return taken_; }
    bool flushed() const override { return taken_ == offered_; }
    const Status& status() override { return status_; }

    bool pending() const { return taken_ != offered_ && status_.ok(); }
    // Writes what the sockets take; true if that was anything.
    bool pump();
    // Whether this socket was full and there is something for it.
    bool wants(size_t socket) const;
    void add_to(Transport::Counters& counters) const;

private:
    struct Slice {
        FrameHeader header;
        const std::byte* data = nullptr;
        size_t written = 0;  // of header and payload together

        size_t size() const { return sizeof header + header.bytes; }
        bool complete() const { return written == size(); }
    };
    struct Stripe {
        const TcpSocket* socket = nullptr;
        uint64_t slice = 0;  // if busy: the one that is partly written
        bool busy = false;
        bool full = false;
    };

    Slice& slice(uint64_t number) { return queue_[number % kLinkDepth]; }
    bool has_work(const Stripe& stripe) const { return stripe.busy || started_ < offered_; }
    bool write_round();
    size_t write(Stripe& stripe);
    void account(Stripe& stripe, size_t bytes);

    std::array<Slice, kLinkDepth> queue_;
    std::vector<Stripe> stripes_;
    size_t next_stripe_ = 0;
    uint64_t offered_ = 0, started_ = 0, taken_ = 0;  // taken_ <= started_ <= offered_
    uint64_t messages_ = 0, payload_ = 0, bytes_ = 0;
    Status status_;
};

}  // namespace ringccl
