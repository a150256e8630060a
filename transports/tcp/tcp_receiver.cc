#include "transports/tcp/tcp_receiver.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace ringccl {
namespace {

// No kernel buffers frames by the million; a header that is so far ahead is none.
constexpr uint64_t kFarthestAhead = 1 << 24;

}  // namespace

TcpReceiver::TcpReceiver(std::span<const TcpSocket> sockets) : stripes_(sockets.size()) {
    for (size_t i = 0; i < sockets.size(); ++i) stripes_[i].socket = &sockets[i];
}

void TcpReceiver::post(std::byte* landing, size_t bytes) {
    assert(posted_ - taken_ < kLinkDepth);
    slot(posted_++) = {.landing = landing, .bytes = bytes, .view = {}};
    for (Stripe& stripe : stripes_)
        if (stripe.stage == Stage::paused && status_.ok()) digest(stripe);
}

RecvLink::Taken TcpReceiver::take(View& view) {
    if (taken_ != posted_ && slot(taken_).filled) {
        view = slot(taken_++).view;
        return Taken::slice;
    }
    return status_.ok() ? Taken::nothing : Taken::broken;
}

bool TcpReceiver::pump() {
    uint64_t bytes_before = bytes_, filled_before = filled_;
    for (Stripe& stripe : stripes_) {
        bool more = true;
        while (more && waiting() && readable(stripe)) {
            uint64_t filled = filled_;
            more = read(stripe) && filled_ == filled;
        }
    }
    // One socket's end is no harm as long as the slices can come on another.
    if (waiting() && std::none_of(stripes_.begin(), stripes_.end(), readable))
        status_ = failure(ringRemoteError, "{} closed the connection before {} came; see what that rank reports",
                          stripes_[0].socket->peer(), expected());
    return bytes_ != bytes_before || filled_ != filled_before;
}

// One recvmsg: the rest of the payload to where it belongs, and the next header with what follows it into `input`. True if
// the socket may hold more.
bool TcpReceiver::read(Stripe& stripe) {
    // Either nothing is left in `input`, or less than a header.
    std::memmove(stripe.input.data(), stripe.input.data() + stripe.begin, stripe.end - stripe.begin);
    stripe.end -= stripe.begin;
    stripe.begin = 0;
    size_t direct = stripe.stage == Stage::payload ? stripe.left : 0;
    size_t space = kInputBytes - stripe.end;
    iovec pieces[2] = {{stripe.into, direct}, {stripe.input.data() + stripe.end, space}};
    msghdr message{};
    message.msg_iov = direct > 0 ? pieces : pieces + 1;
    message.msg_iovlen = direct > 0 ? 2 : 1;
    ssize_t got;
    do {
        got = ::recvmsg(stripe.socket->fd(), &message, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);

    if (got < 0) {
        if (int error = errno; error != EAGAIN && error != EWOULDBLOCK)
            status_ = stripe.socket->lost(error, expected() + " was expected");
        return false;
    }
    if (got == 0) {
        if (stripe.stage == Stage::header && stripe.end == 0)
            stripe.stage = Stage::ended;
        else
            status_ = failure(ringRemoteError,
                              "{} closed the connection within a slice while {} was expected; see what that rank reports",
                              stripe.socket->peer(), expected());
        return false;
    }
    size_t bytes = static_cast<size_t>(got), placed = std::min(bytes, direct);
    bytes_ += bytes;
    stripe.into += placed;
    stripe.left -= placed;
    stripe.end += bytes - placed;
    digest(stripe);
    return bytes == direct + space;
}

// Works through what is in `input`: frames by the dozen if they are small.
void TcpReceiver::digest(Stripe& stripe) {
    while (status_.ok()) {
        size_t there = stripe.end - stripe.begin;
        const std::byte* from = stripe.input.data() + stripe.begin;
        switch (stripe.stage) {
            case Stage::header:
                if (there < sizeof stripe.header) return;
                std::memcpy(&stripe.header, from, sizeof stripe.header);
                stripe.begin += sizeof stripe.header;
                if (!plausible(stripe)) return reject(stripe);
                stripe.next = stripe.header.slice + 1;
                stripe.stage = Stage::paused;
                break;
            case Stage::paused:
                if (stripe.header.slice >= posted_) return;
                claim(stripe);
                break;
            case Stage::payload:
            case Stage::skip: {
                size_t step = std::min(there, stripe.left);
                bool keep = stripe.stage == Stage::payload;
                if (keep && step > 0) std::memcpy(stripe.into, from, step);
                stripe.into += keep ? step : 0;
                stripe.begin += step;
                stripe.left -= step;
                if (stripe.left > 0) return;
                if (keep) {
                    Slot& whole = slot(stripe.header.slice);
                    fill({whole.landing, whole.bytes, stripe.header.print}, stripe.header.slice);
                }
                stripe.stage = Stage::header;
                break;
            }
            case Stage::ended:
                return;
        }
    }
}

// Whether the header can be the next one on this socket. A lone socket brings the slices without a gap.
bool TcpReceiver::plausible(const Stripe& stripe) const {
    const FrameHeader& header = stripe.header;
    if (header.magic != kFrameMagic || header.print.reserved != 0) return false;
    if (stripes_.size() == 1) return header.slice == stripe.next;
    return header.slice >= taken_ && header.slice < posted_ + kFarthestAhead;
}

void TcpReceiver::reject(const Stripe& stripe) {
    const FrameHeader& header = stripe.header;
    status_ = failure(ringSystemError,
                      "{} sent what is no header of a slice (magic {:#010x}, slice {}, {} bytes) while {} was expected: the "
                      "ranks may run different versions of the library, or something between them changed the bytes",
                      stripe.socket->peer(), header.magic, header.slice, header.bytes, expected());
}

// The header's slice has a landing. If the payload would not fit exactly, nothing is written and the view says what came: the
// ranks disagree about the operation, which the engine puts into words.
void TcpReceiver::claim(Stripe& stripe) {
    Slot& mine = slot(stripe.header.slice);
    if (mine.claimed) return reject(stripe);  // another socket brought the same slice
    mine.claimed = true;
    stripe.left = stripe.header.bytes;
    stripe.into = mine.landing;
    stripe.stage = Stage::payload;
    if (stripe.header.bytes == mine.bytes) return;
    stripe.stage = Stage::skip;
    fill({nullptr, stripe.header.bytes, stripe.header.print}, stripe.header.slice);
}

void TcpReceiver::fill(const View& view, uint64_t number) {
    slot(number).view = view;
    slot(number).filled = true;
    ++filled_;
}

std::string TcpReceiver::expected() const {
    for (uint64_t number = taken_; number < posted_; ++number) {
        const Slot& slot = slots_[number % kLinkDepth];
        if (!slot.filled) return fmt::format("slice {} of {} bytes", number, slot.bytes);
    }
    return fmt::format("slice {}", posted_);
}

}  // namespace ringccl
