#include "doctor.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "straggler.h"
#include "ward.h"

namespace ringccl::doctor {
namespace {

using Cause = Diagnosis::Cause;

struct Finding {
    Cause cause;
    std::vector<int> ranks;
    std::string sentence;
};

// ---- somebody calls something else ----

// The first field that tells two operations apart, with both values; nullopt if none does.
std::optional<std::string> difference(const RecordedOperation& one, const RecordedOperation& other) {
    const auto said = [](const char* field, const auto& ours, const auto& theirs) {
        return fmt::format("the {} is {}, not {}", field, ours, theirs);
    };
    if (one.kind != other.kind) return said("operation", one.kind, other.kind);
    if (one.type != other.type) return said("type", one.type, other.type);
    if (one.op != other.op) return said("op", one.op, other.op);
    if (one.count != other.count) return said("count", one.count, other.count);
    if (one.root != other.root) return said("root", one.root, other.root);
    return std::nullopt;
}

// Ranks that call the same thing under one number.
using Camp = std::vector<int>;

std::vector<Camp> camps(const Ward& ward, uint64_t sequence) {
    std::vector<Camp> found;
    for (const auto& [rank, dump] : ward.dumps) {
        const RecordedOperation* operation = dump.collective(sequence);
        if (operation == nullptr) continue;
        const auto same = [&](const Camp& camp) {
            return !difference(*operation, *ward.dumps.at(camp.front()).collective(sequence));
        };
        const auto camp = std::find_if(found.begin(), found.end(), same);
        if (camp == found.end())
            found.push_back({rank});
        else
            camp->push_back(rank);
    }
    return found;
}

std::optional<Finding> divergence(const Ward& ward, std::vector<std::string>& notes) {
    std::set<uint64_t> sequences;
    for (const auto& [rank, dump] : ward.dumps)
        for (const RecordedOperation& operation : dump.operations)
            if (!operation.pair()) sequences.insert(operation.sequence);
    for (uint64_t sequence : sequences) {
        auto all = camps(ward, sequence);
        if (all.size() < 2) continue;
        std::stable_sort(all.begin(), all.end(), [](const Camp& a, const Camp& b) { return a.size() > b.size(); });
        const Camp &many = all.front(), &few = all.back();
        const RecordedOperation& usual = *ward.dumps.at(many.front()).collective(sequence);
        const RecordedOperation& odd = *ward.dumps.at(few.front()).collective(sequence);
        const std::string field = *difference(odd, usual);
        // A call too few shifts all that follow.
        const auto follows = [&](const Camp& camp, const RecordedOperation& mine) {
            const RecordedOperation* next = ward.dumps.at(camp.front()).collective(sequence + 1);
            return next != nullptr && !difference(*next, mine);
        };
        const auto hint = [&](const Camp& late, const Camp& early) {
            notes.push_back(
                fmt::format("what {} called as operation {} is what {} called as operation {}: a call may have been left out",
                            ranks_text(late, ward.size), sequence, ranks_text(early, ward.size), sequence + 1));
        };
        if (follows(many, odd)) hint(few, many);
        if (follows(few, usual)) hint(many, few);
        std::vector<int> odd_ranks;
        for (size_t i = 1; i < all.size(); ++i) odd_ranks.insert(odd_ranks.end(), all[i].begin(), all[i].end());
        std::sort(odd_ranks.begin(), odd_ranks.end());
        if (few.size() == many.size() || all.size() > 2)
            return Finding{Cause::divergence, odd_ranks,
                           fmt::format("the ranks differ at operation {}: {} called {} but {} called {} ({})", sequence,
                                       ranks_text(few, ward.size), odd.description(), ranks_text(many, ward.size),
                                       usual.description(), field)};
        return Finding{Cause::divergence, odd_ranks,
                       fmt::format("{} diverged at operation {}: {} called {} where {} called {} ({})",
                                   ranks_text(few, ward.size), sequence, few.size() == 1 ? "it" : "they", odd.description(),
                                   ranks_text(many, ward.size), usual.description(), field)};
    }
    return std::nullopt;
}

// ---- what the ranks say themselves ----

// Small for what is a cause in itself, large for what only tells of another rank.
int echo(const RankDump::Failure& failure) {
    if (failure.code == ringMismatch) return 1;
    if (failure.code == ringTimeout) return 2;
    if (failure.code == ringRemoteError) return 3;
    return 0;
}

int64_t failed_at(const RankDump& dump) {
    const RecordedOperation* current = dump.current();
    return current != nullptr && current->end_us ? *current->end_us : dump.time_us;
}

// The failure that is least an echo, and of those the first.
const RankDump* first_failure(const Ward& ward) {
    const RankDump* first = nullptr;
    for (const auto& [rank, dump] : ward.dumps) {
        if (!dump.failure) continue;
        const auto weight = [](const RankDump& each) { return std::pair(echo(*each.failure), failed_at(each)); };
        if (first == nullptr || weight(dump) < weight(*first)) first = &dump;
    }
    return first;
}

Finding reported(const Ward& ward, const RankDump& first) {
    std::vector<int> same, failed;
    for (const auto& [rank, dump] : ward.dumps) {
        if (!dump.failure) continue;
        failed.push_back(rank);
        if (dump.failure->text == first.failure->text) same.push_back(rank);
    }
    if (same.size() > 1)
        return {Cause::failure, same,
                fmt::format("{} report {}: {}", ranks_text(same, ward.size), first.failure->name, first.failure->text)};
    const RecordedOperation* in = first.current();
    return {Cause::failure,
            {first.rank},
            fmt::format("rank {} failed{}{} with {}: {}", first.rank, failed.size() > 1 ? " first" : "",
                        in != nullptr ? ", in " + in->name() + "," : "", first.failure->name, first.failure->text)};
}

// ---- somebody is missing ----

std::optional<Finding> missing_dump(const Ward& ward) {
    if (ward.missing.empty()) return std::nullopt;
    for (int rank : ward.missing) {
        const auto waiting = ward.waiting_for(rank);
        if (waiting.empty()) continue;
        return Finding{
            Cause::missing_dump,
            {rank},
            fmt::format("there is no dump of rank {}, which {} wait{} for in {}: its process has died, or its dump was "
                        "not collected",
                        rank, ranks_text(waiting, ward.size), waiting.size() == 1 ? "s" : "",
                        ward.dumps.at(waiting.front()).current()->name())};
    }
    if (ward.failed())
        return Finding{Cause::missing_dump, ward.missing,
                       fmt::format("there is no dump of {}: died, or not collected; the others have failed",
                                   ranks_text(ward.missing, ward.size))};
    return std::nullopt;
}

// "its last was broadcast (operation 16), which ended 12.3 s before the dump"
std::string last_words(const RankDump& dump) {
    const RecordedOperation* last = dump.last_finished();
    if (last == nullptr) return "it has called nothing yet";
    return fmt::format("its last was {}, which ended {} before its dump", last->name(),
                       span_text(dump.time_us - *last->end_us));
}

std::optional<Finding> missing_call(const Ward& ward) {
    std::map<uint64_t, Camp> idle;  // ranks between operations, by the number of their next collective
    for (const auto& [rank, dump] : ward.dumps)
        if (dump.current() == nullptr) idle[dump.begun].push_back(rank);
    for (const auto& [next, ranks] : idle) {
        std::vector<int> in;
        for (const auto& [rank, dump] : ward.dumps)
            if (const auto* current = dump.current(); current != nullptr && !current->pair() && current->sequence == next)
                in.push_back(rank);
        if (in.empty()) continue;
        const RecordedOperation& call = *ward.dumps.at(in.front()).current();
        const bool all = static_cast<int>(in.size() + ranks.size()) == ward.size;
        return Finding{Cause::missing_call, ranks,
                       fmt::format("{} {} not called {}, which {} in; {}", ranks_text(ranks, ward.size),
                                   ranks.size() == 1 ? "has" : "have", call.name(),
                                   all ? (in.size() == 1 ? "the other is" : "all others are")
                                       : ranks_text(in, ward.size) + (in.size() == 1 ? " is" : " are"),
                                   ranks.size() == 1 ? last_words(ward.dumps.at(ranks.front()))
                                                     : fmt::format("of rank {}: {}", ranks.front(),
                                                                   last_words(ward.dumps.at(ranks.front()))))};
    }
    return std::nullopt;
}

// ---- somebody waits ----

// Whom a rank waits for, and whom that one waits for, as far as it goes. A rank that comes twice ends it: a circle.
std::vector<int> chain(const Ward& ward, int from) {
    std::vector<int> path = {from};
    while (ward.dumps.contains(path.back())) {
        const RecordedOperation* current = ward.dumps.at(path.back()).current();
        if (current == nullptr || current->waits_for < 0) break;
        const bool seen = std::find(path.begin(), path.end(), current->waits_for) != path.end();
        path.push_back(current->waits_for);
        if (seen) break;
    }
    return path;
}

// What `from` has offered and `to`, which waits for it, has not received.
std::optional<Finding> stuck(const Ward& ward, int from, int to) {
    const auto sender = ward.dumps.find(from), receiver = ward.dumps.find(to);
    if (sender == ward.dumps.end() || receiver == ward.dumps.end()) return std::nullopt;
    const auto out = sender->second.peers.find(to), in = receiver->second.peers.find(from);
    if (out == sender->second.peers.end() || in == receiver->second.peers.end()) return std::nullopt;
    if (out->second.offered <= in->second.received) return std::nullopt;
    return Finding{
        Cause::stuck_link,
        {from, to},
        fmt::format("the {} link from rank {} to rank {} does not move: rank {} has offered {} slices, rank {} has received "
                    "{} and waits for more in {}",
                    out->second.transport, from, to, from, out->second.offered, to, in->second.received,
                    receiver->second.current()->name())};
}

std::string chain_text(const std::vector<int>& path) {
    std::string text = fmt::format("rank {} waits for rank {}", path[0], path[1]);
    constexpr size_t kNamed = 6;
    const size_t skipped = path.size() > kNamed + 2 ? path.size() - kNamed - 2 : 0;
    if (skipped != 0) text += fmt::format(", that one over {} others", skipped);
    for (size_t i = 2 + skipped; i < path.size(); ++i) text += fmt::format(", which waits for rank {}", path[i]);
    return text;
}

std::optional<Finding> wait(const Ward& ward) {
    // Of all chains the one whose end most ranks wait for.
    std::map<int, std::vector<std::vector<int>>> by_end;
    for (const auto& [rank, dump] : ward.dumps)
        if (auto path = chain(ward, rank); path.size() > 1) by_end[path.back()].push_back(path);
    if (by_end.empty()) return std::nullopt;
    const auto most = std::max_element(by_end.begin(), by_end.end(),
                                       [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    const auto& path = *std::max_element(most->second.begin(), most->second.end(),
                                         [](const auto& a, const auto& b) { return a.size() < b.size(); });
    for (size_t i = path.size() - 1; i > 0; --i)
        if (auto link = stuck(ward, path[i], path[i - 1])) return link;

    const int end = path.back();
    const bool circle = std::count(path.begin(), path.end(), end) > 1;
    const auto dump = ward.dumps.find(end);
    if (dump == ward.dumps.end()) return std::nullopt;
    if (circle) {
        const std::vector<int> round(std::find(path.begin(), path.end(), end), path.end());
        std::vector<std::string> calls;
        for (size_t i = 0; i + 1 < round.size() && i < 4; ++i)
            calls.push_back(fmt::format("rank {} is in {}", round[i], ward.dumps.at(round[i]).current()->name()));
        return Finding{Cause::wait,
                       {round.begin(), round.end() - 1},
                       fmt::format("the ranks wait in a circle: {} ({})", chain_text(round), fmt::join(calls, ", "))};
    }
    const RecordedOperation* current = dump->second.current();
    return Finding{
        Cause::wait,
        {end},
        fmt::format("{}, which is {}", chain_text(path),
                    current == nullptr
                        ? "between operations: " + last_words(dump->second)
                        : fmt::format("in {} and waits for nobody: it computes, has no CPU, or is stopped", current->name()))};
}

// ---- all is well ----

Finding well(const Ward& ward) {
    std::string whom = ranks_text(
        [&] {
            std::vector<int> all;
            for (const auto& [rank, dump] : ward.dumps) all.push_back(rank);
            return all;
        }(),
        ward.size);
    uint64_t least = UINT64_MAX, most = 0;
    int busy = 0;
    for (const auto& [rank, dump] : ward.dumps) {
        least = std::min(least, dump.completed);
        most = std::max(most, dump.completed);
        busy += dump.current() != nullptr;
    }
    const std::string missing =
        ward.missing.empty() ? "" : fmt::format(", but there is no dump of {}", ranks_text(ward.missing, ward.size));
    const std::string done = least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
    return {ward.missing.empty() ? Cause::none : Cause::missing_dump, ward.missing,
            fmt::format("all is well on {}: {} operations completed, {}{}", whom, done,
                        busy == 0 ? "none running" : fmt::format("{} rank{} at work on the next", busy, busy == 1 ? "" : "s"),
                        missing)};
}

std::vector<Diagnosis::Row> table(const Ward& ward) {
    std::vector<Diagnosis::Row> rows;
    for (int rank = 0; rank < ward.size; ++rank) {
        Diagnosis::Row row{rank, "", "", "", ""};
        if (const auto at = ward.dumps.find(rank); at != ward.dumps.end()) {
            const RankDump& dump = at->second;
            const RecordedOperation *last = dump.last_finished(), *current = dump.current();
            row.last = last == nullptr ? "-" : last->name();
            row.in = current == nullptr ? "-" : current->name();
            row.waits_for = current == nullptr || current->waits_for < 0 ? "-" : fmt::format("{}", current->waits_for);
            row.failure = dump.failure ? dump.failure->name : "-";
        } else {
            row.last = "no dump";
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

// In the order of how much each explains: what differs explains who waits, who is gone explains who waits for it.
Finding find(const Ward& ward, std::vector<std::string>& notes) {
    if (auto found = divergence(ward, notes)) return *found;
    const RankDump* failure = first_failure(ward);
    if (failure != nullptr && echo(*failure->failure) < 2) return reported(ward, *failure);
    if (auto found = missing_dump(ward)) return *found;
    // Without a deadline that has passed, the ranks were told why they had to stop, and where they were then tells nothing.
    if (failure != nullptr && failure->failure->code != ringTimeout) return reported(ward, *failure);
    if (ward.failed() || ward.hangs()) {
        if (auto found = missing_call(ward)) return *found;
        if (auto found = wait(ward)) return *found;
    }
    if (failure != nullptr) return reported(ward, *failure);
    if (const auto late = straggler(ward); late && ward.missing.empty())
        return {Cause::straggler, {late->rank}, late->sentence};
    return well(ward);
}

}  // namespace

const char* cause_name(Cause cause) {
    switch (cause) {
        case Cause::none:
            return "none";
        case Cause::divergence:
            return "divergence";
        case Cause::failure:
            return "failure";
        case Cause::missing_dump:
            return "missing dump";
        case Cause::missing_call:
            return "missing call";
        case Cause::stuck_link:
            return "stuck link";
        case Cause::wait:
            return "wait";
        case Cause::straggler:
            return "straggler";
    }
    return "unknown";
}

Result<Diagnosis> diagnose(std::vector<RankDump> dumps) {
    Diagnosis diagnosis;
    RINGCCL_ASSIGN(const Ward ward, Ward::of(std::move(dumps), diagnosis.notes));
    Finding found = find(ward, diagnosis.notes);
    diagnosis.cause = found.cause;
    diagnosis.ranks = std::move(found.ranks);
    diagnosis.sentence = std::move(found.sentence);
    diagnosis.rows = table(ward);
    const RankDump* first = first_failure(ward);
    if (first != nullptr && diagnosis.sentence.find(first->failure->text) == std::string::npos)
        diagnosis.notes.push_back(reported(ward, *first).sentence);
    if (!ward.missing.empty() && found.cause != Cause::missing_dump)
        diagnosis.notes.push_back(fmt::format("there is no dump of {}", ranks_text(ward.missing, ward.size)));
    return diagnosis;
}

}  // namespace ringccl::doctor
