#include "transports/p2p/links.h"

#include <sys/uio.h>

#include <cstring>

#include "base/asymmetric_fence.h"
#include "transports/p2p/p2p_transport.h"

namespace ringccl {

// The links of one pair and lane start from what the counters hold, which is zero: arenas are new for each communicator.
P2pSendLink::P2pSendLink(P2pTransport& transport, Peer& peer, int lane)
    : transport_(transport),
      peer_(peer),
      outbox_(transport.arena().outbox(peer.rank, lane)),
      counter_(peer.arena.released(transport.rank(), lane)),
      peer_fetches_(peer.arena.fetches(transport.rank())->load(std::memory_order_acquire) != 0),
      peer_sees_(peer.arena.sees(transport.rank())->load(std::memory_order_acquire) != 0) {}

bool P2pSendLink::takes(const Source& source) const {
    if (source.bytes <= transport_.inline_bytes()) return true;
    if (transport_.on_device() && !peer_sees_ && (source.block == nullptr || source.block->fd() < 0)) return false;
    if (peer_.same_process) return true;
    if (source.block != nullptr && transport_.show(peer_, *source.block)) return true;
    return source.fetch && peer_fetches_ && source.bytes >= transport_.fetch_min_bytes();
}

bool P2pSendLink::ready() {
    if (offered_ - released_ < kLinkDepth) return true;
    return offered_ - taken() < kLinkDepth;
}

void P2pSendLink::offer(const Fingerprint& print, const Source& source) {
    Entry& entry = outbox_[offered_ % kLinkDepth];
    entry.print = print;
    entry.bytes = static_cast<uint32_t>(source.bytes);
    if (source.bytes <= transport_.inline_bytes()) {
        entry.form = Entry::Form::inside;
        if (source.bytes != 0) std::memcpy(entry.inside, source.data, source.bytes);
    } else if (peer_.same_process) {
        entry.form = Entry::Form::pointer;
        entry.place = {reinterpret_cast<uint64_t>(source.data), 0};
    } else if (source.block != nullptr && transport_.show(peer_, *source.block)) {
        entry.form = Entry::Form::block;
        entry.place = {static_cast<uint64_t>(source.data - source.block->data()), source.block->id()};
    } else {
        entry.form = Entry::Form::foreign;
        entry.place = {reinterpret_cast<uint64_t>(source.data), 0};
    }
    entry.number.store(++offered_, std::memory_order_release);
    transport_.note(peer_);
    transport_.count_sent(source.bytes);
}

const Status& P2pSendLink::status() {
    if (status_.ok() && transport_.gone(peer_) && taken() < offered_)
        status_ = failure(ringRemoteError, "rank {} has left the communicator and will not take what it was sent", peer_.rank);
    return status_;
}

P2pRecvLink::P2pRecvLink(P2pTransport& transport, Peer& peer, int lane)
    : transport_(transport),
      peer_(peer),
      outbox_(peer.arena.outbox(transport.rank(), lane)),
      counter_(transport.arena().released(peer.rank, lane)),
      reading_(transport.arena().reading(peer.rank, lane)) {}

void P2pRecvLink::post(std::byte* landing, size_t bytes) {
    posts_[posted_++ % kLinkDepth] = {landing, bytes};
}

RecvLink::Taken P2pRecvLink::take(View& view) {
    if (taken_ == posted_) return Taken::nothing;
    const Entry& entry = outbox_[taken_ % kLinkDepth];
    if (entry.number.load(std::memory_order_acquire) != taken_ + 1) return nothing();
    view = {nullptr, entry.bytes, entry.print, entry.form != Entry::Form::inside};
    // A slice of another size is a disagreement between ranks: shown without its bytes, for the engine to explain.
    if (entry.bytes == posts_[taken_ % kLinkDepth].bytes) {
        const Taken located = locate(entry, view);
        if (located != Taken::slice) return located;
    }
    ++taken_;
    transport_.count_received(view.bytes);
    return Taken::slice;
}

// Whether the next slice can still come.
RecvLink::Taken P2pRecvLink::nothing() {
    if (!transport_.gone(peer_)) return Taken::nothing;
    // What a peer has offered before its goodbye was heard can be seen by now.
    if (outbox_[taken_ % kLinkDepth].number.load(std::memory_order_acquire) == taken_ + 1) return Taken::nothing;
    status_ =
        failure(ringRemoteError, "rank {} has left the communicator and will not send what this rank waits for", peer_.rank);
    return Taken::broken;
}

bool P2pRecvLink::stands() {
    // Not before what has been read.
    std::atomic_thread_fence(std::memory_order_acquire);
    if (peer_.arena.withdrawn()->load(std::memory_order_relaxed) == 0) return true;
    status_ = failure(ringRemoteError, "rank {} has withdrawn what it offered, for it cannot go on; see what that rank reports",
                      peer_.rank);
    return false;
}

// A peer in this process may free its memory as soon as it has failed, and so may a device's, so it waits until nobody reads
// (P2pTransport::withdraw). Host memory of another process may change under the reader, but is there.
bool P2pRecvLink::pin() {
    if (!peer_.must_pin) return true;
    reading_->store(++pins_, std::memory_order_relaxed);
    if (peer_.same_process)
        light_fence();
    else
        std::atomic_thread_fence(std::memory_order_seq_cst);
    return stands();
}

bool P2pRecvLink::unpin() {
    if (peer_.must_pin) reading_->store(--pins_, std::memory_order_release);
    return stands();
}

RecvLink::Taken P2pRecvLink::locate(const Entry& entry, View& view) {
    switch (entry.form) {
        case Entry::Form::inside:
            view.data = entry.inside;
            return Taken::slice;
        case Entry::Form::pointer:
            view.data = reinterpret_cast<const std::byte*>(entry.place.where);
            return Taken::slice;
        case Entry::Form::block: {
            const MappedBlock* block = transport_.find(peer_, entry.place.block, status_);
            if (!status_.ok()) return Taken::broken;
            if (block == nullptr) return Taken::nothing;  // its descriptor is still on the way
            if (entry.place.where > block->bytes() || view.bytes > block->bytes() - entry.place.where) {
                status_ = failure(ringInternalError, "rank {} offers bytes outside its shared block", peer_.rank);
                return Taken::broken;
            }
            view.data = block->data() + entry.place.where;
            return Taken::slice;
        }
        case Entry::Form::foreign: {
            std::byte* landing = posts_[taken_ % kLinkDepth].landing;
            for (size_t done = 0; done < view.bytes;) {  // the call may stop early at a mapping's edge
                const iovec here{landing + done, view.bytes - done};
                const iovec there{reinterpret_cast<void*>(entry.place.where + done), view.bytes - done};
                const ssize_t got = process_vm_readv(peer_.pid, &here, 1, &there, 1, 0);
                if (got <= 0) {
                    // A rank that has failed may have freed the memory already.
                    const int error = errno;
                    if (!stands()) return Taken::broken;
                    status_ = error == ESRCH ? failure(ringRemoteError, "rank {} (process {}) is gone", peer_.rank, peer_.pid)
                                             : system_failure(error, "process_vm_readv of {} bytes from rank {} (process {})",
                                                              view.bytes, peer_.rank, peer_.pid);
                    return Taken::broken;
                }
                done += static_cast<size_t>(got);
            }
            view.data = landing;
            view.lent = false;
            return stands() ? Taken::slice : Taken::broken;
        }
    }
    status_ = failure(ringInternalError, "rank {} offers a slice of an unknown form", peer_.rank);
    return Taken::broken;
}

void P2pRecvLink::release() {
    counter_->store(++released_, std::memory_order_release);
    transport_.note(peer_);
}

}  // namespace ringccl
