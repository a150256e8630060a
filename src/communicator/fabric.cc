#include "communicator/fabric.h"

#include <unistd.h>

#include <algorithm>

#include "base/cpus.h"
#include "base/process.h"
#include "bootstrap/interfaces.h"
#include "bootstrap/meeting.h"
#include "bootstrap/unique_id.h"
#include "trace/log.h"
#include "transports/p2p/p2p_transport.h"
#include "transports/tcp/tcp_transport.h"

namespace ringccl {

using json = nlohmann::json;

struct Fabric::Choice {
    std::unique_ptr<Transport> transport;
    P2pTransport* p2p = nullptr;  // the same one, where it is that
    bool within_host = false;     // serves ranks of one host only
    std::vector<json> cards;      // of all ranks; null where a rank has not opened it
    std::vector<bool> reached;
    std::vector<std::string> why_not;
    bool used = false;
};

namespace {

// Making has failed: who has not come for the bad news by now may never come.
const std::atomic<bool> kNow{true};
// Slices must be larger on a device, where each costs a launch, and so must what holds them.
constexpr size_t kDeviceStage = 8;

}  // namespace

Fabric::~Fabric() = default;

Status Fabric::open_transports(const Settings& settings, const Owner& owner) {
    if (world_.rank == 0) {
        RINGCCL_ASSIGN(hub_, HubPost::open(secret_, settings));
    }
    const auto allowed = [&](std::string_view name) {
        return settings.transport == "auto" || settings.transport.find(name) != std::string::npos;
    };
    if (allowed("p2p")) {
        RINGCCL_ASSIGN(auto p2p, P2pTransport::open(secret_, world_.rank, world_.size, settings, owner.presence, owner.bell,
                                                    owner.device));
        auto choice = std::make_unique<Choice>();
        choice->p2p = p2p.get();
        choice->within_host = true;
        choice->transport = std::move(p2p);
        choices_.push_back(std::move(choice));
    }
    if (allowed("tcp")) {
        RINGCCL_ASSIGN(auto tcp, TcpTransport::open(secret_, world_.rank, world_.size, settings, owner.presence));
        auto choice = std::make_unique<Choice>();
        choice->transport = std::move(tcp);
        choices_.push_back(std::move(choice));
    }
    return {};
}

Result<std::string> Fabric::own_card(const Settings& settings, Device& device) const {
    RINGCCL_ASSIGN(auto interfaces, host_interfaces());
    RINGCCL_ASSIGN(interfaces, choose_interfaces(std::move(interfaces), settings.interface));
    std::vector<std::string> addresses;
    for (const Interface& interface : interfaces) addresses.push_back(interface.address);
    json card = {{"host", settings.host_id.empty() ? boot_id() : settings.host_id},
                 {"name", fmt::format("process {} on {}", getpid(), host_name())},
                 {"process", process_token()},
                 {"cpus", usable_cpus()},
                 {"runs_on", device.peer_memory() == nullptr ? "the host" : "a CUDA device"},
                 {"addresses", addresses},
                 {"shared", shared_settings(settings)},
                 {"transports", json::object()}};
    for (const auto& choice : choices_) card["transports"][choice->transport->name()] = choice->transport->card();
    if (hub_ != nullptr) card["hub"] = hub_->card();
    return card.dump();
}

Status Fabric::read_cards(const std::vector<std::string>& cards, Settings& settings) {
    std::vector<std::string> hosts, places;
    for (size_t r = 0; r < cards.size(); ++r) {
        try {
            const json card = json::parse(cards[r]);
            if (const auto why = card.find("declines"); why != card.end())
                return failure(ringRemoteError, "rank {} cannot take part: {}", r, why->get<std::string>());
            hosts.push_back(card.at("host").get<std::string>());
            roster_.names.push_back(fmt::format("rank {} ({})", r, card.at("name").get<std::string>()));
            roster_.process.push_back(card.at("process").get<std::string>());
            addresses_.push_back(card.at("addresses").get<std::vector<std::string>>());
            places.push_back(card.at("runs_on").get<std::string>());
            if (places[r] != places[0])
                return failure(ringInvalidUsage,
                               "rank 0 is made on {} but rank {} on {}; config.deviceKind must be one for all", places[0], r,
                               places[r]);
            if (r == 0) {
                costs_.cpus = card.at("cpus").get<int>();
                hub_card_ = card.value("hub", json());
                RINGCCL_TRY(adopt_shared_settings(settings, card.at("shared").get<std::string>()));
            }
            for (auto& choice : choices_) {
                const auto& transports = card.at("transports");
                const auto found = transports.find(choice->transport->name());
                choice->cards.push_back(found == transports.end() ? json() : *found);
            }
        } catch (const json::exception& problem) {
            return failure(ringInternalError, "rank {}'s card cannot be read: {}", r, problem.what());
        }
    }
    world_ = make_world(world_.rank, hosts);
    return {};
}

Status Fabric::probe(Deadline deadline, const std::atomic<bool>& stop) {
    for (auto& choice : choices_) {
        choice->reached.assign(world_.size, false);
        choice->why_not.assign(world_.size, "");
        std::vector<bool> wanted(world_.size);
        for (int r = 0; r < world_.size; ++r) {
            if (r == world_.rank) continue;
            wanted[r] = !choice->within_host || world_.host[r] == world_.host[world_.rank];
            if (!wanted[r]) choice->why_not[r] = "another host";
        }
        wanted[world_.rank] = true;  // so that "wanted by all" means that no rank is out of reach
        RINGCCL_TRY(choice->transport->probe(choice->cards, wanted, deadline, stop, choice->reached, choice->why_not));
    }
    return {};
}

Status Fabric::agree(Bootstrap& bootstrap, Deadline deadline, const std::atomic<bool>& stop) {
    json mine = json::object();
    for (const auto& choice : choices_) {
        std::string bits;
        for (bool reached : choice->reached) bits += reached ? '1' : '0';
        mine[choice->transport->name()] = bits;
    }
    RINGCCL_ASSIGN(auto votes, bootstrap.exchange(mine.dump(), deadline, stop));
    Reached reached(choices_.size());
    world_.visible = true;
    for (size_t t = 0; t < choices_.size(); ++t) {
        for (const std::string& vote : votes) {
            const json bits = json::parse(vote, nullptr, false);
            const std::string row = bits.is_object() ? bits.value(choices_[t]->transport->name(), "") : "";
            auto& line = reached[t].emplace_back(world_.size, false);
            for (size_t r = 0; r < row.size() && r < line.size(); ++r) line[r] = row[r] == '1';
        }
    }
    chosen_ = choose_transports(world_.rank, reached);
    model_costs(reached);
    for (int r = 0; r < world_.size; ++r) {
        if (r == world_.rank) continue;
        if (chosen_[r] >= 0) {
            choices_[chosen_[r]]->used = true;
            continue;
        }
        std::string reasons;
        for (size_t t = 0; t < choices_.size(); ++t)
            reasons +=
                fmt::format("; {}: {}", choices_[t]->transport->name(),
                            choices_[t]->why_not[r].empty() ? "that rank could not reach this one" : choices_[t]->why_not[r]);
        return failure(ringInvalidUsage, "rank {} finds no transport to rank {} among those that RINGCCL_TRANSPORT allows{}",
                       world_.rank, r, reasons);
    }
    // Direct plans need every pair of a host to see each other's memory; all ranks judge by the same votes.
    for (int a = 0; a < world_.size; ++a) {
        for (int b = 0; b < world_.size; ++b) {
            if (a == b || world_.host[a] != world_.host[b]) continue;
            bool seen = false;
            for (size_t t = 0; t < choices_.size(); ++t)
                seen |= choices_[t]->within_host && reached[t][a][b] && reached[t][b][a];
            world_.visible &= seen;
        }
    }
    return {};
}

Status Fabric::make_stages(const Settings& settings, Device& device) {
    stage_bytes_ = static_cast<size_t>(settings.stage_bytes);
    PeerMemory* const memory = device.peer_memory();
    if (memory != nullptr) stage_bytes_ *= kDeviceStage;
    RINGCCL_ASSIGN(std::shared_ptr<Block> on_host, SharedBlock::create("ringccl-stage", stage_bytes_ * kLanes));
    if (memory == nullptr) {
        stages_.device = std::move(on_host);
        return {};
    }
    // A rank alone has nobody to show anything.
    RINGCCL_ASSIGN(stages_.device, memory->create((world_.size > 1 ? stage_bytes_ : Stage::kAlign) * kLanes));
    Block::enrol(stages_.device);
    stages_.host = std::move(on_host);
    return {};
}

// Pins the stage on the host if some peer cannot be shown the device's.
Status Fabric::reach_host_stage(Device& device) {
    PeerMemory* const memory = device.peer_memory();
    if (memory == nullptr) return {};
    for (int r = 0; r < world_.size; ++r) {
        if (r == world_.rank || !choices_[chosen_[r]]->transport->capabilities(r).host_only) continue;
        RINGCCL_ASSIGN(host_reach_, memory->reach(stages_.host->data(), stages_.host->bytes(), true));
        break;
    }
    return {};
}

Status Fabric::connect_neighbours(Deadline deadline, const std::atomic<bool>& stop) {
    const auto me = std::find(world_.ring.begin(), world_.ring.end(), world_.rank) - world_.ring.begin();
    std::vector<int> neighbours = {world_.ring[(me + 1) % world_.size], world_.ring[(me + world_.size - 1) % world_.size]};
    if (neighbours[0] == neighbours[1]) neighbours.pop_back();
    for (size_t t = 0; t < choices_.size(); ++t) {
        std::vector<int> peers;
        for (int r : neighbours)
            if (chosen_[r] == static_cast<int>(t)) peers.push_back(r);
        if (!peers.empty()) RINGCCL_TRY(choices_[t]->transport->connect(peers, 0, deadline, stop));
    }
    return {};
}

// A rank with sockets sleeps in poll(), which an abort must end, and peers in shared memory too. They were handed the event for
// that when it was clear that sockets would be needed; if that showed only later, because shared memory failed for some pair,
// they were not.
Status Fabric::equip(Doorbell& bell) {
    bool sockets = false, shared_memory = false;
    for (const auto& choice : choices_)
        if (choice->used) (choice->within_host ? shared_memory : sockets) = true;
    if (!sockets) return {};
    if (shared_memory && bell.eventfd() < 0) bell.look_often();
    return bell.open_eventfd();
}

// From what all know, so that all choose the same plans: of all pairs within hosts the dearest link, and of all pairs across.
void Fabric::model_costs(const Reached& reached) {
    std::optional<LinkCost> local, remote;
    for (int a = 0; a < world_.size; ++a) {
        const std::vector<int> chosen = choose_transports(a, reached);
        for (int b = 0; b < a; ++b) {
            if (chosen[b] < 0) continue;
            const bool within_host = world_.host[a] == world_.host[b];
            const LinkCost cost = choices_[chosen[b]]->transport->cost(within_host);
            auto& dearest = within_host ? local : remote;
            if (!dearest || dearest->alpha_us < cost.alpha_us) dearest = cost;
        }
    }
    if (local || remote) costs_.local = local ? *local : *remote;
    costs_.remote = remote ? *remote : costs_.local;
}

Status Fabric::meet(Bootstrap& bootstrap, Settings& settings, const Owner& owner, Deadline deadline) {
    RINGCCL_TRY(read_cards(bootstrap.cards(), settings));
    if (world_.size == 1) return make_stages(settings, owner.device);
    if (hub_ != nullptr) hub_->serve(roster_);
    // First, so that all hear of what goes wrong from here on, whatever they are at.
    RINGCCL_ASSIGN(lifeline_,
                   Lifeline::tie(secret_, world_.rank, roster_, hub_card_, settings, owner.watched, deadline, owner.stop));
    RINGCCL_TRY(make_stages(settings, owner.device));
    for (auto& choice : choices_)
        if (choice->p2p != nullptr) RINGCCL_TRY(choice->p2p->lend(stages_.all()));
    RINGCCL_TRY(probe(deadline, owner.stop));
    RINGCCL_TRY(agree(bootstrap, deadline, owner.stop));
    RINGCCL_TRY(reach_host_stage(owner.device));
    RINGCCL_TRY(equip(owner.bell));
    RINGCCL_TRY(connect_neighbours(deadline, owner.stop));
    // From here on all may be ready, and one may be done and have failed in an operation, which is no failure of making.
    return bootstrap.exchange("ready", deadline, owner.aborted).status();
}

Result<std::unique_ptr<Fabric>> Fabric::build(const ringUniqueId& id, int rank, int size, Settings& settings, Owner owner,
                                              Deadline deadline) {
    std::unique_ptr<Fabric> fabric(new Fabric);
    fabric->world_.rank = rank;
    fabric->world_.size = size;
    RINGCCL_ASSIGN(fabric->secret_, secret_of(id));
    // A failure from here on is told to all. Failing to open a transport too: this rank joins first and says so there.
    const Status opened = size > 1 ? fabric->open_transports(settings, owner) : Status{};
    RINGCCL_ASSIGN(const std::string card, fabric->own_card(settings, owner.device));
    auto joined = Bootstrap::join(id, rank, size, card, settings, deadline, owner.stop);
    if (!joined.ok()) {
        await_meeting_end(fabric->secret_, deadline, kNow);
        return joined.status();
    }
    auto bootstrap = joined.take();
    const Status met = opened.ok() ? fabric->meet(*bootstrap, settings, owner, deadline) : opened;
    if (!met.ok()) {
        const bool own = met.code() != ringRemoteError;
        if (own) bootstrap->fail(met, deadline);
        if (fabric->lifeline_ != nullptr) {
            if (own) fabric->lifeline_->failed(met);
            fabric->lifeline_->leave();
        }
        bootstrap.reset();
        await_meeting_end(fabric->secret_, deadline, kNow);
        return met;
    }
    bootstrap.reset();
    await_meeting_end(fabric->secret_, deadline, owner.stop);
    for (const std::string& line : fabric->report()) log().info("rank {}: {}", rank, line);
    return fabric;
}

void Fabric::decline(const ringUniqueId& id, int rank, int size, const Settings& settings, const Status& why) {
    if (size == 1) return;
    log().warn("rank {} cannot take part in a communicator, which it tells the others: {}", rank, why.text());
    const Deadline deadline = Deadline::after(std::chrono::milliseconds(settings.init_timeout_ms));
    const std::atomic<bool> never{false};
    (void)Bootstrap::join(id, rank, size, json{{"declines", why.text()}}.dump(), settings, deadline, never);
    if (auto secret = secret_of(id); secret.ok()) await_meeting_end(secret.value(), deadline, kNow);
}

void Fabric::untie() {
    if (lifeline_ != nullptr) lifeline_->leave();
    lifeline_.reset();
}

std::vector<Transport*> Fabric::transports() const {
    std::vector<Transport*> used;
    for (const auto& choice : choices_)
        if (choice->used) used.push_back(choice->transport.get());
    return used;
}

uint64_t Fabric::name() const {
    constexpr size_t kBytes = 6;
    const Digest digest = keyed_digest(secret_, "name");
    uint64_t name = 0;
    for (size_t i = 0; i < kBytes; ++i) name = name << 8 | digest[i];
    return name;
}

FlightRecorder::Header Fabric::record_header() const {
    FlightRecorder::Header header;
    header.communicator = fmt::format("{:012x}", name());
    header.rank = world_.rank;
    header.size = world_.size;
    header.names = roster_.names;
    for (int r = 0; r < world_.size; ++r)
        header.transport.push_back(r == world_.rank ? "" : choices_[chosen_[r]]->transport->name());
    return header;
}

Wiring Fabric::wiring(std::chrono::milliseconds timeout, const std::atomic<bool>& stop, FlightRecorder& recorder) {
    Wiring wiring;
    wiring.progress = [&recorder](int peer) -> FlightRecorder::Progress& { return recorder.progress(peer); };
    wiring.connect = [this, timeout, &stop, &recorder](const std::vector<int>& peers, int lane,
                                                       const Wiring::Cause& cause) -> Status {
        for (size_t t = 0; t < choices_.size(); ++t) {
            Transport& transport = *choices_[t]->transport;
            std::vector<int> fresh;
            for (int r : peers)
                if (chosen_[r] == static_cast<int>(t) && !transport.connected(r, lane)) fresh.push_back(r);
            if (fresh.empty()) continue;
            // Ranks that differ about the operation may never come to make these links.
            lifeline_->keep_waiting(cause.sequence);
            recorder.waits_for(cause.record, fresh.front());
            const Status made = transport.connect(fresh, lane, Deadline::after(timeout), stop);
            recorder.waits_for(cause.record, -1);
            lifeline_->keep_waiting({});
            RINGCCL_TRY(made);
        }
        return {};
    };
    wiring.sender = [this](int peer, int lane) -> SendLink& { return choices_[chosen_[peer]]->transport->sender(peer, lane); };
    wiring.receiver = [this](int peer, int lane) -> RecvLink& {
        return choices_[chosen_[peer]]->transport->receiver(peer, lane);
    };
    wiring.capabilities = [this](int peer) { return choices_[chosen_[peer]]->transport->capabilities(peer); };
    return wiring;
}

Result<ringUniqueId> Fabric::meeting_of(const std::vector<int>& members, uint64_t round, const Settings& settings) const {
    // Everybody derives the same secret, and from it a port on the first member's host, below the ephemeral range.
    constexpr uint16_t kFirstPort = 20000, kPortRange = 12000;
    constexpr uint8_t kPortsTried = 8;
    Invitation invitation;
    invitation.secret = derive(secret_, fmt::format("members {} round {}", fmt::join(members, ","), round));
    const Digest where = keyed_digest(invitation.secret, "port");
    invitation.port = static_cast<uint16_t>(kFirstPort + (where[0] << 8 | where[1]) % kPortRange);
    invitation.ports = kPortsTried;
    invitation.addresses = addresses_[members.front()];
    if (members.front() != world_.rank) return pack(invitation);
    return open_meeting(Place{invitation.secret, invitation.addresses.front(), invitation.port, kPortsTried}, settings);
}

std::vector<std::string> Fabric::report() const {
    std::vector<std::string> lines;
    for (int r = 0; r < world_.size; ++r) {
        if (r == world_.rank) continue;
        const Choice& choice = *choices_[chosen_[r]];
        std::string line = fmt::format("rank {} is reached by {}", r, choice.transport->name());
        if (choice.p2p != nullptr) line += fmt::format(" ({})", choice.p2p->describe(r));
        for (int t = 0; t < chosen_[r]; ++t)
            line +=
                fmt::format("; not by {}: {}", choices_[t]->transport->name(),
                            choices_[t]->why_not[r].empty() ? "that rank could not reach this one" : choices_[t]->why_not[r]);
        lines.push_back(std::move(line));
    }
    return lines;
}

}  // namespace ringccl
