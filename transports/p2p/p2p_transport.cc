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
// Longer than any device takes for a slice.
constexpr std::chrono::seconds kDeviceReads{1};
}  // namespace

Result<std::unique_ptr<P2pTransport>> P2pTransport::open(const Secret& secret, int rank, int size, const Settings& settings,
                                                         const Presence& presence, Doorbell& bell, Device& device) {
    std::unique_ptr<P2pTransport> p2p(new P2pTransport);
    p2p->rank_ = rank;
    p2p->pointers_ = settings.pointer != 0;
    p2p->memory_ = device.peer_memory();
    p2p->fetching_ = settings.cma != 0 && !p2p->on_device();
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

Status P2pTransport::lend(std::vector<std::shared_ptr<Block>> stages) {
    stages_ = std::move(stages);
    if (on_device()) RINGCCL_TRY(memory_->poke(stages_[0]->data(), probe_word_));
    for (size_t s = stages_.size(); s-- != 0;) arena_.stage_id(s)->store(stages_[s]->id(), std::memory_order_release);
    return {};
}

json P2pTransport::card() const {
    return {{"device", on_device() ? memory_->device() : -1},
            {"process", process_token()},
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
        peer.must_pin = peer.same_process || on_device();
        if (peer.same_process) {
            peer.direct = Block::find(card.at("arena").get<uint64_t>());
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
        if (!peer.same_process) to_write.push_back(r);
        to_hear.push_back(r);
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
            while (peer.shown.size() < stages_.size()) {
                const Block& stage = *stages_[peer.shown.size()];
                auto sent = send_block(peer, stage);
                if (!sent.ok()) return give_up(sent.status());
                if (!sent.value()) return false;
                peer.shown.push_back(stage.id());
            }
            // The arena goes last: when it is there, all is there.
            auto sent = write({Letter::Kind::arena, rank_, block_->id(), block_->bytes()}, block_->fd());
            if (!sent.ok()) return give_up(sent.status());
            return sent.value();
        });
        RINGCCL_TRY(receive_letters());
        // Devices are tried out on what peers of this process have lent, so that must be there.
        for (int r : to_hear)
            if (peers_[r].same_process)
                peers_[r].reached = !on_device() || peers_[r].arena.stage_id(0)->load(std::memory_order_acquire) != 0;
        if (to_write.empty() && std::none_of(to_hear.begin(), to_hear.end(), unheard)) break;
        if (stop.load()) return failure(ringRemoteError, "aborted while sharing memory with ranks of this host");
        if (deadline.passed()) {
            for (int r : to_hear)
                if (unheard(r)) why_not[r] = "it did not pass its shared memory in time";
            break;
        }
        pollfd inbox{courier_->fd(), POLLIN, 0};
        const bool near =
            std::any_of(to_hear.begin(), to_hear.end(), [&](int r) { return peers_[r].same_process && unheard(r); });
        poll(&inbox, 1, to_write.empty() && !near ? static_cast<int>(std::min<int64_t>(deadline.left().count(), 50)) : 1);
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
        if (on_device()) prove_seeing(peer, cards[r]);
    }
    return {};
}

// Has this rank's device read a word of the peer's.
void P2pTransport::prove_seeing(Peer& peer, const json& card) {
    const Status seen = see(peer, card);
    if (!seen.ok())
        log().info("rank {} is shown memory of rank {}'s device through the host: {}", rank_, peer.rank, seen.text());
    arena_.sees(peer.rank)->store(seen.ok(), std::memory_order_release);
}

Status P2pTransport::see(Peer& peer, const json& card) {
    const std::byte* word_at = nullptr;
    std::shared_ptr<Block> direct;
    if (peer.same_process) {
        if (const int device = card.at("device").get<int>(); device != memory_->device()) RINGCCL_TRY(memory_->enable(device));
        direct = Block::find(peer.arena.stage_id(0)->load(std::memory_order_acquire));
        if (direct != nullptr) word_at = direct->data();
    } else if (const auto* shown = peer.block(peer.arena.stage_id(0)->load(std::memory_order_acquire))) {
        word_at = shown->map.data();
    }
    if (word_at == nullptr) return failure(ringSystemError, "its memory could not be opened");
    RINGCCL_ASSIGN(const uint64_t word, memory_->peek(word_at));
    if (word == card.at("word").get<uint64_t>()) return {};
    return failure(ringSystemError, "what was read from it is not what it wrote");
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
            peer.blocks.push_back({letter.id, std::move(block), true, nullptr});
            return true;
        }
        case Letter::Kind::device_block: {
            if (!on_device()) return true;
            MappedBlock block;
            if (mapped(memory_->open(letter.name, letter.bytes), block)) {
                peer.blocks.push_back({letter.id, std::move(block), false, nullptr});
                return true;
            }
            // The stage may be out of reach; then this peer is shown memory through the host.
            if (peer.reached) return false;
            log().info("rank {} cannot open memory of rank {}'s device: {}", rank_, peer.rank, status.text());
            status = {};
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

Capabilities P2pTransport::capabilities(int peer) const {
    return {.inline_bytes = inline_bytes(),
            .lands = fetching_ && !peers_[peer].same_process,
            .host_only = on_device() && peers_[peer].arena.sees(rank_)->load(std::memory_order_acquire) == 0};
}

// As measured, see docs/performance.md: where one step more or fewer bytes win. The numbers rank plans, they predict no times.
// Those of devices are estimates: a step costs a launch and the look at its end.
LinkCost P2pTransport::cost(bool) const {
    if (on_device())
        return {.alpha_us = 10, .message_us = 0.2, .send_us_per_byte = 1e-6, .recv_us_per_byte = 1e-6, .slice_bytes = 4 << 20};
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
        if (peer.same_process && peer.stages[0] == nullptr)
            for (size_t s = 0; s < Arena::kStages; ++s)
                peer.stages[s] = Block::find(peer.arena.stage_id(s)->load(std::memory_order_acquire));
        send_link = std::make_unique<P2pSendLink>(*this, peer, lane);
        recv_links_[index(r, lane)] = std::make_unique<P2pRecvLink>(*this, peer, lane);
    }
    return {};
}

bool P2pTransport::show(Peer& peer, const Block& block) {
    if (std::find(peer.shown.begin(), peer.shown.end(), block.id()) != peer.shown.end()) return true;
    auto sent = send_block(peer, block);
    if (!sent.ok() || !sent.value()) return false;
    peer.shown.push_back(block.id());
    return true;
}

Result<bool> P2pTransport::send_block(Peer& peer, const Block& block) {
    const bool on_host = block.fd() >= 0;
    return courier_->send(
        peer.courier,
        {on_host ? Letter::Kind::block : Letter::Kind::device_block, rank_, block.id(), block.bytes(), block.device_name()},
        block.fd());
}

const MappedBlock* P2pTransport::find(Peer& peer, uint64_t id, Status& status) {
    Peer::Shown* block = peer.block(id);
    if (block == nullptr) {
        status = receive_letters();
        block = peer.block(id);
        if (block == nullptr) return nullptr;
    }
    if (on_device() && block->on_host && block->reach == nullptr) {
        auto reach = memory_->reach(block->map.data(), block->map.bytes(), false);
        status = reach.status();
        if (!reach.ok()) return nullptr;
        block->reach = reach.take();
    }
    return &block->map;
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
    // Nobody begins to read any more; who reads already is in the middle of one slice. A process that was stopped there may
    // never say that it is done, but its device has long been.
    const Deadline patience = Deadline::after(kDeviceReads);
    for (const Peer& peer : peers_) {
        if (!peer.reached || !peer.must_pin) continue;
        for (int lane = 0; lane < kLanes; ++lane)
            while (peer.arena.reading(rank_, lane)->load(std::memory_order_acquire) != 0) {
                if (!peer.same_process && (gone(peer) || patience.passed())) break;
                std::this_thread::yield();
            }
    }
}

// Memory of a device is freed for peers in other processes too.
bool P2pTransport::settled() {
    return std::all_of(peers_.begin(), peers_.end(), [this](const Peer& peer) {
        if (!peer.reached || !peer.must_pin || peer.same_process || gone(peer)) return true;
        for (int lane = 0; lane < kLanes; ++lane)
            if (SendLink* link = send_links_[index(peer.rank, lane)].get(); link != nullptr && link->taken() < link->offered())
                return false;
        return true;
    });
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
    if (on_device())
        return arena_.sees(peer_rank)->load() != 0 ? "memory of its device is read where it stands"
                                                   : "memory of its device is read through the host's";
    if (peer.same_process) return "the same process: memory is read where it stands";
    const bool fetches = arena_.fetches(peer_rank)->load() != 0;
    return fetches
               ? fmt::format("shared memory; other memory is fetched by process_vm_readv from {} bytes up", fetch_min_bytes_)
               : std::string("shared memory; other memory is copied through it");
}

}  // namespace ringccl
