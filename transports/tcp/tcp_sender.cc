#include "transports/tcp/tcp_sender.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cassert>
#include <limits>

namespace ringccl {

TcpSender::TcpSender(std::span<const TcpSocket> sockets) {
    for (const TcpSocket& socket : sockets) stripes_.push_back({.socket = &socket});
}

void TcpSender::offer(const Fingerprint& print, const Source& source) {
    assert(ready() && source.bytes <= std::numeric_limits<uint32_t>::max());
    slice(offered_) = {.header = {.bytes = static_cast<uint32_t>(source.bytes), .slice = offered_, .print = print},
                       .data = source.data};
    ++offered_;
    write_round();  // a socket that was full at the last pump() is left to the next one
}

bool TcpSender::pump() {
    for (Stripe& stripe : stripes_) stripe.full = false;
    return write_round();
}

bool TcpSender::wants(size_t socket) const {
    return pending() && stripes_[socket].full && has_work(stripes_[socket]);
}

// Goes round the sockets, starting after the one that took something last, until a whole round moves nothing.
bool TcpSender::write_round() {
    bool moved = false;
    size_t idle = 0;
    while (idle < stripes_.size() && pending()) {
        Stripe& stripe = stripes_[next_stripe_];
        next_stripe_ = (next_stripe_ + 1) % stripes_.size();
        if (!stripe.full && has_work(stripe) && write(stripe) > 0) {
            moved = true;
            idle = 0;
        } else {
            ++idle;
        }
    }
    return moved;
}

// One sendmsg: the rest of the socket's own slice, then slices that have no socket yet. Those of which the kernel takes not
// even a byte remain free for another socket.
size_t TcpSender::write(Stripe& stripe) {
    std::array<iovec, 2 * (kLinkDepth + 1)> pieces;
    size_t count = 0, asked = 0;
    auto add = [&](Slice& slice) {
        if (slice.written < sizeof slice.header)
            pieces[count++] = {reinterpret_cast<std::byte*>(&slice.header) + slice.written,
                               sizeof slice.header - slice.written};
        size_t at = slice.written - std::min(slice.written, sizeof slice.header);
        if (at < slice.header.bytes)
            pieces[count++] = {const_cast<std::byte*>(slice.data) + at, slice.header.bytes - at};  // sendmsg only reads
        asked += slice.size() - slice.written;
    };
    if (stripe.busy) add(slice(stripe.slice));
    // A lone socket gets all there is in one call. Of several, each gets one new slice at a time, so that all carry their
    // share.
    uint64_t last = stripes_.size() == 1 ? offered_ : std::min(offered_, started_ + 1);
    for (uint64_t number = started_; number < last; ++number) add(slice(number));

    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    ssize_t sent;
    do {
        sent = ::sendmsg(stripe.socket->fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) {
        stripe.full = true;
        if (int error = errno; error != EAGAIN && error != EWOULDBLOCK) {
            uint64_t number = stripe.busy ? stripe.slice : started_;
            status_ = stripe.socket->lost(error, fmt::format("slice {} was being sent to it", number));
        }
        return 0;
    }
    stripe.full = static_cast<size_t>(sent) < asked;
    account(stripe, static_cast<size_t>(sent));
    return static_cast<size_t>(sent);
}

// Spreads the bytes that a socket took over the slices in the order in which write() named them.
void TcpSender::account(Stripe& stripe, size_t bytes) {
    bytes_ += bytes;
    while (bytes > 0) {
        if (!stripe.busy) {
            stripe.slice = started_++;
            stripe.busy = true;
        }
        Slice& current = slice(stripe.slice);
        size_t step = std::min(bytes, current.size() - current.written);
        current.written += step;
        bytes -= step;
        if (!current.complete()) break;
        stripe.busy = false;
        ++messages_;
        payload_ += current.header.bytes;
    }
    while (taken_ < started_ && slice(taken_).complete()) ++taken_;
}

void TcpSender::add_to(Transport::Counters& counters) const {
    counters.messages_sent += messages_;
    counters.payload_sent += payload_;
    counters.bytes_sent += bytes_;
}

}  // namespace ringccl
