#include "transports/p2p/p2p_transport.h"

#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/asymmetric_fence.h"
#include "base/process.h"
#include "trace/log.h"

namespace ringccl {

using json = nlohmann::json;

namespace {
// Bytes of an entry that are not payload: counted as headers.
constexpr size_t kHeaderBytes = sizeof(Entry) - kInlineBytes;
}  // namespace

Result<std::unique_ptr<P2pTransport>> P2pTransport::open(const Secret& secret, int rank, int size, const Settings& settings,
                                                         const Presence& presence, Doorbell& bell) {
    std::unique_ptr<P2pTransport> p2p(new P2pTransport);
    p2p->rank_ = rank;
    p2p->pointers_ = settings.pointer != 0;
    p2p->fetching_ = settings.cma != 0;
    p2p->fetch_min_bytes_ = static_cast<size_t>(settings.cma_min_bytes);
    p2p->presence_ = &presence;
    p2p->bell_ = &bell;
    RINGCCL_ASSIGN(p2p->block_, SharedBlock::create("ringccl-arena", Arena::bytes(size)));
    p2p->arena_ = Arena(p2p->block_->data(), p2p->block_->data());
    bell.live_in(p2p->arena_.doorbell());
    RINGCCL_ASSIGN(p2p->courier_, Courier::open(secret, rank));
    p2p->probe_word_ = p2p->block_->id();
    p2p->peers_.resize(size);
    for (int r = 0; r < size; ++r) p2p->peers_[r].rank = r;
    p2p->send_links_.resize(static_cast<size_t>(size) * kLanes);
    p2p->recv_links_.resize(static_cast<size_t>(size) * kLanes);
    if (p2p->fetching_) {
        // Under Yama's restricted mode a process may be read by strangers only if it says so; ranks are not each other's
        // parents.
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    }
    return p2p;
}

void P2pTransport::lend_stage(std::shared_ptr<SharedBlock> stage) {
    stage_ = std::move(stage);
    arena_.stage_id()->store(stage_->id(), std::memory_order_release);
}

json P2pTransport::card() const {
    return {{"process", process_token()},
            {"pid", process_id()},
            {"courier", courier_->name()},
            {"arena", block_->id()},
            {"word_at", reinterpret_cast<uint64_t>(&probe_word_)},
            {"word", probe_word_}};
}

bool P2pTransport::read_card(const json& card, Peer& peer, std::string& why_not) {
    try {
        peer.pid = card.at("pid").get<pid_t>();
        peer.courier = card.at("courier").get<std::string>();
        peer.same_process = pointers_ && card.at("process").get<std::string>() == process_token();
        if (peer.same_process) {
            peer.direct = SharedBlock::find(card.at("arena").get<uint64_t>());
            if (peer.direct == nullptr) {
                why_not = "it is in this process and has already given up";
                return false;
            }
            peer.arena = Arena(peer.direct->data(), peer.direct->data());
        }
        return true;
    } catch (const json::exception& problem) {
        why_not = fmt::format("its card cannot be read: {}", problem.what());
        return false;
    }
}

Status P2pTransport::probe(const std::vector<json>& cards, const std::vector<bool>& wanted, Deadline deadline,
                           const std::atomic<bool>& stop, std::vector<bool>& reached, std::vector<std::string>& why_not) {
    const int size = static_cast<int>(peers_.size());
    const bool everybody = std::all_of(wanted.begin(), wanted.end(), [](bool w) { return w; });
    // With ranks elsewhere, sleeping means sleeping on sockets, and peers here must be able to end that sleep.
    if (!everybody) RINGCCL_TRY(bell_->open_eventfd());

    std::vector<int> to_write, to_hear;
    for (int r = 0; r < size; ++r) {
        if (r == rank_ || !wanted[r]) continue;
        if (cards[r].is_null()) {
            why_not[r] = "it has not opened the p2p transport";
            continue;
        }
        Peer& peer = peers_[r];
        if (!read_card(cards[r], peer, why_not[r])) continue;
        if (peer.same_process) {
            peer.reached = true;
        } else {
            to_write.push_back(r);
            to_hear.push_back(r);
        }
    }

    // Everybody writes to everybody and queues are short (net.unix.max_dgram_qlen), so writing and reading take turns.
    const auto unheard = [&](int r) { return !peers_[r].reached; };
    while (true) {
        std::erase_if(to_write, [&](int r) {
            Peer& peer = peers_[r];
            const auto give_up = [&](const Status& why) {
                why_not[r] = why.text();
                std::erase(to_hear, r);
                return true;
            };
            const auto write = [&](Letter letter, int descriptor) -> Result<bool> {
                return courier_->send(peer.courier, letter, descriptor);
            };
            if (peer.eventfd_sent == false && bell_->eventfd() >= 0) {
                auto sent = write({Letter::Kind::event, rank_, 0, 0}, bell_->eventfd());
                if (!sent.ok()) return give_up(sent.status());
                if (!sent.value()) return false;
                peer.eventfd_sent = true;
            }
            if (peer.shown.empty()) {
                auto sent = write({Letter::Kind::block, rank_, stage_->id(), stage_->bytes()}, stage_->fd());
                if (!sent.ok()) return give_up(sent.status());
                if (!sent.value()) return false;
                peer.shown.push_back(stage_->id());
            }
            // The arena goes last: when it is there, all is there.
            auto sent = write({Letter::Kind::arena, rank_, block_->id(), block_->bytes()}, block_->fd());
            if (!sent.ok()) return give_up(sent.status());
            return sent.value();
        });
        RINGCCL_TRY(receive_letters());
        if (to_write.empty() && std::none_of(to_hear.begin(), to_hear.end(), unheard)) break;
        if (stop.load()) return failure(ringRemoteError, "aborted while sharing memory with ranks of this host");
        if (deadline.passed()) {
            for (int r : to_hear)
                if (unheard(r)) why_not[r] = "it did not pass its shared memory in time";
            break;
        }
        pollfd inbox{courier_->fd(), POLLIN, 0};
        poll(&inbox, 1, to_write.empty() ? static_cast<int>(std::min<int64_t>(deadline.left().count(), 50)) : 1);
    }

    for (int r = 0; r < size; ++r) {
        Peer& peer = peers_[r];
        if (!peer.reached || !why_not[r].empty()) continue;
        reached[r] = true;
        if (peer.same_process) {
            peer.eventfd = -1;  // read from the doorbell when ringing
        } else if (fetching_) {
            prove_fetching(peer, cards[r]);
        }
    }
    return {};
}

void P2pTransport::prove_fetching(Peer& peer, const json& card) {
    uint64_t word = 0;
    const iovec here{&word, sizeof word};
    const iovec there{reinterpret_cast<void*>(card.at("word_at").get<uint64_t>()), sizeof word};
    const ssize_t got = process_vm_readv(peer.pid, &here, 1, &there, 1, 0);
    const bool proved = got == sizeof word && word == card.at("word").get<uint64_t>();
    if (!proved)
        log().info("rank {} cannot read rank {}'s memory by process_vm_readv: {}", rank_, peer.rank,
                   got < 0 ? std::strerror(errno) : "another process answers to its pid");
    arena_.fetches(peer.rank)->store(proved, std::memory_order_release);
}

Status P2pTransport::receive_letters() {
    RINGCCL_ASSIGN(auto letters, courier_->receive());
    for (auto& [letter, descriptor] : letters) {
        if (letter.from < 0 || letter.from >= static_cast<int>(peers_.size())) continue;
        Status status;
        if (!open_letter(peers_[letter.from], letter, std::move(descriptor), status)) return status;
    }
    return {};
}

bool P2pTransport::open_letter(Peer& peer, const Letter& letter, Fd descriptor, Status& status) {
    const auto mapped = [&](Result<MappedBlock> result, MappedBlock& into) {
        status = result.status();
        if (result.ok()) into = result.take();
        return result.ok();
    };
    switch (letter.kind) {
        case Letter::Kind::event:
            peer.event = std::move(descriptor);
            peer.eventfd = peer.event.get();
            return true;
        case Letter::Kind::block: {
            MappedBlock block;
            if (!mapped(MappedBlock::map(descriptor.get(), letter.bytes, false), block)) return false;
            peer.blocks.emplace_back(letter.id, std::move(block));
            return true;
        }
        case Letter::Kind::arena:
            if (letter.bytes < Arena::bytes(static_cast<int>(peers_.size()))) return true;  // cannot be a rank of this world
            if (!mapped(MappedBlock::map(descriptor.get(), letter.bytes, false), peer.arena_map)) return false;
            if (!mapped(MappedBlock::map(descriptor.get(), Arena::kDoorbellBytes, true), peer.doorbell_map)) return false;
            peer.arena = Arena(peer.doorbell_map.data(), peer.arena_map.data());
            peer.reached = true;
            return true;
    }
    return true;
}

Capabilities P2pTransport::capabilities(int) const {
    return {.shows_memory = true, .inline_bytes = kInlineBytes};
}

// As measured, see docs/performance.md: where one step more or fewer bytes win. The numbers rank plans, they predict no times.
LinkCost P2pTransport::cost(bool) const {
    return {.alpha_us = 0.5,
            .show_us = 0.3,
            .message_us = 0.2,
            .send_us_per_byte = 6e-5,  // ordinary memory goes through the stage
            .recv_us_per_byte = 2.5e-5,
            .inline_bytes = kInlineBytes,
            .slice_bytes = 256 << 10};
}

Status P2pTransport::connect(std::span<const int> peers, int lane, Deadline, const std::atomic<bool>&) {
    for (int r : peers) {
        auto& send_link = send_links_[index(r, lane)];
        if (send_link != nullptr) continue;
        Peer& peer = peers_[r];
        // What a peer staged in its last operation may be read here after the peer is gone.
        if (peer.same_process && peer.stage == nullptr)
            peer.stage = SharedBlock::find(peer.arena.stage_id()->load(std::memory_order_acquire));
        send_link = std::make_unique<P2pSendLink>(*this, peer, lane);
        recv_links_[index(r, lane)] = std::make_unique<P2pRecvLink>(*this, peer, lane);
    }
    return {};
}

bool P2pTransport::show(Peer& peer, const SharedBlock& block) {
    if (std::find(peer.shown.begin(), peer.shown.end(), block.id()) != peer.shown.end()) return true;
    auto sent = courier_->send(peer.courier, {Letter::Kind::block, rank_, block.id(), block.bytes()}, block.fd());
    if (!sent.ok() || !sent.value()) return false;
    peer.shown.push_back(block.id());
    return true;
}

const MappedBlock* P2pTransport::find(Peer& peer, uint64_t id, Status& status) {
    if (const MappedBlock* block = peer.block(id)) return block;
    status = receive_letters();
    return peer.block(id);
}

bool P2pTransport::progress() {
    if (to_ring_.empty()) return false;
    const auto must_fence = [](const Peer* peer) { return needs_fence(*peer->arena.doorbell()); };
    fence_before_ringing(std::any_of(to_ring_.begin(), to_ring_.end(), must_fence));
    for (Peer* peer : to_ring_) {
        DoorbellWord& word = *peer->arena.doorbell();
        ring(word, peer->same_process ? word.eventfd.load() : peer->eventfd);
        peer->to_ring = false;
    }
    to_ring_.clear();
    return false;
}

void P2pTransport::withdraw() {
    arena_.withdrawn()->store(1, std::memory_order_seq_cst);
    heavy_fence();
    // Nobody begins to read any more; who reads already is in the middle of one slice.
    for (const Peer& peer : peers_) {
        if (!peer.reached || !peer.same_process) continue;
        for (int lane = 0; lane < kLanes; ++lane)
            while (peer.arena.reading(rank_, lane)->load(std::memory_order_acquire) != 0) std::this_thread::yield();
    }
}

void P2pTransport::count_sent(size_t bytes) {
    ++counters_.messages_sent;
    counters_.payload_sent += bytes;
    counters_.bytes_sent += bytes + kHeaderBytes;
}

void P2pTransport::count_received(size_t bytes) {
    counters_.bytes_received += bytes + kHeaderBytes;
}

std::string P2pTransport::describe(int peer_rank) const {
    const Peer& peer = peers_[peer_rank];
    if (!peer.reached) return "not reached";
    if (peer.same_process) return "the same process: memory is read where it stands";
    const bool fetches = arena_.fetches(peer_rank)->load() != 0;
    return fetches
               ? fmt::format("shared memory; other memory is fetched by process_vm_readv from {} bytes up", fetch_min_bytes_)
               : std::string("shared memory; other memory is copied through it");
}

}  // namespace ringccl
