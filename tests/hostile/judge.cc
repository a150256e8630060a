// What each rank may be told after each fault, as the header and docs/errors.md promise it.
#include <signal.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "job.h"

namespace ringccl::test {
namespace {

// Whether the text speaks of this rank: "rank 1" is not in "rank 12".
bool names(const std::string& text, int rank) {
    const std::string word = fmt::format("rank {}", rank);
    for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
        const size_t end = at + word.size();
        if (end == text.size() || !std::isdigit(static_cast<unsigned char>(text[end]))) return true;
    }
    return false;
}

// What a rank must have been told.
struct Expected {
    std::vector<ringResult_t> codes;
    std::vector<int> one_of = {};         // ranks of which the text names one; empty: it need not
    std::vector<std::string> words = {};  // that are all in the text
};

std::vector<int> neighbours_of_fault(const Scene& scene) {
    std::vector<int> ranks;
    for (int r = 0; r < scene.ranks; ++r)
        if (scene.beside(r)) ranks.push_back(r);
    return ranks;
}

// Whether no rank can end this call before all have begun it.
bool binds_all(const Call& call) {
    const Kind kind = call.c.kind;
    return call.form == Form::collective && (kind == Kind::all_reduce || kind == Kind::scatter_reduce ||
                                             kind == Kind::all_gather || kind == Kind::all_to_all || kind == Kind::barrier);
}

Expected disagreement_in(const Scene& scene) {
    Expected expected = {{ringMismatch}, {scene.rank}, {"the ranks call different things"}};
    const Call& call = scene.call(scene.at);
    const std::optional<Call> other = scene.instead(call);
    // Else some have gone on to other calls when the disagreement is found out, and what differs first is not to be foreseen.
    if (!other || !binds_all(call) || !binds_all(*other)) return expected;
    const auto both = [&](const char* field, const std::string& one, const std::string& another) {
        expected.words.insert(expected.words.end(), {field, one, another});
    };
    const Case &a = call.c, &b = other->c;
    if (scene.fault == Fault::other_kind) both("the operation", kind_name(a.kind), kind_name(b.kind));
    if (scene.fault == Fault::other_type) both("the type", type_name(a.type), type_name(b.type));
    if (scene.fault == Fault::other_op) both("the op", op_name(a.op), op_name(b.op));
    if (scene.fault == Fault::other_count) both("the count", fmt::format(" {} ", a.count), fmt::format(" {} ", b.count));
    if (scene.fault == Fault::other_root) both("the root", fmt::format(" {} ", a.root), fmt::format(" {} ", b.root));
    return expected;
}

// Where connections are cut between ranks that exchange data, or all of the hub's.
bool blames_anybody(const Scene& scene) {
    return scene.fault == Fault::cut && (std::strcmp(scene.path.transport, "p2p") != 0 || scene.beside(0));
}

Expected expected_of(const Scene& scene, int rank) {
    const bool self = rank == scene.rank;
    switch (scene.fault) {
        case Fault::none:
        case Fault::delay:
        case Fault::corrupt_payload:
            return {{ringSuccess}};
        case Fault::kill:
        case Fault::exit:
            return {{ringRemoteError}, neighbours_of_fault(scene)};
        case Fault::stop:
            if (scene.beside(rank)) return {{ringRemoteError, ringTimeout}};
            return {{ringRemoteError}, neighbours_of_fault(scene)};
        case Fault::late:
            // Between pairs the hub asks only who is waited for, and that one may be held up by another.
            if (!binds_all(scene.call(scene.at))) return {{ringTimeout}};
            return {{ringTimeout}, {scene.rank}};
        case Fault::cut:
            // The connections end at both ends at once: whoever notices first blames the other one, the hub too.
            if (scene.beside(rank) || blames_anybody(scene)) return {{ringRemoteError, ringSystemError}};
            return {{ringRemoteError}, neighbours_of_fault(scene)};
        case Fault::corrupt_header:
            return {{ringRemoteError, ringSystemError, ringMismatch, ringTimeout}};
        case Fault::abort:
            return {{ringRemoteError}, {scene.rank}, {"abort"}};
        case Fault::leave:
            if (self) return {{ringSuccess}};
            return {{ringRemoteError}, {scene.rank}};
        case Fault::linger:
            if (!self) return {{ringSuccess}};
            return {{ringRemoteError}, {}, {"rank"}};
        case Fault::skip:
        case Fault::extra:
            return {{ringMismatch}, {scene.rank}, {"the ranks call different things"}};
        default:
            return disagreement_in(scene);
    }
}

std::string complaints(const Scene& scene, const Report& report) {
    const Expected expected = expected_of(scene, report.rank);
    std::string wrong = report.wrong;
    const auto code = ringResult_t(report.code);
    const auto& codes = expected.codes;
    if (std::find(codes.begin(), codes.end(), code) == codes.end())
        wrong += fmt::format("call {} gave {}; ", report.call, ringGetErrorString(code));
    const auto named = [&](int rank) { return names(report.text, rank); };
    if (!expected.one_of.empty() && std::none_of(expected.one_of.begin(), expected.one_of.end(), named))
        wrong += fmt::format("the text does not name rank {}; ", fmt::join(expected.one_of, " or rank "));
    for (const std::string& word : expected.words)
        if (report.text.find(word) == std::string::npos) wrong += fmt::format("the text lacks \"{}\"; ", word);
    const int extra_ms = scene.fault == Fault::stop   ? scene.heartbeat_ms * 5 / 4
                         : scene.fault == Fault::late ? scene.timeout_ms
                                                      : 0;
    // The one that was stopped hears nothing until it goes on.
    if (report.answered_ms > scene.bound_ms + extra_ms && !scene.excludes(report.rank))
        wrong += fmt::format("the answer came {:.0f} ms after the fault; ", report.answered_ms);
    if (code != ringSuccess && report.answered_ms < 0 && !scene.harmless()) wrong += "there was an error before the fault; ";
    if (report.abort_ms > 2000) wrong += fmt::format("ringCommAbort took {:.0f} ms; ", report.abort_ms);
    for (int failed : report.failed)
        if (blames_anybody(scene))
            break;
        else if (failed < 0 || failed >= scene.ranks || !scene.excludes(failed))
            wrong += fmt::format("ringCommGetFailed lists rank {}; ", failed);
    if (wrong.empty()) return {};
    return fmt::format("\n  rank {}: {}it was told {}: {}", report.rank, wrong, ringGetErrorString(code), report.text);
}

}  // namespace

Verdict judge(const Scene& scene, const Outcome& outcome) {
    std::string wrong;
    for (int p = 0; p < int(outcome.processes.size()); ++p) {
        const Outcome::Process& process = outcome.processes[p];
        const bool doomed = scene.deadly() && p == scene.process_of(scene.rank);
        if (!process.ended) wrong += fmt::format("\n  process {} hangs: {}", p, process.hang);
        if (process.ended && process.signal != 0 && !(doomed && process.signal == SIGKILL))
            wrong += fmt::format("\n  process {} died of {}", p, strsignal(process.signal));
        if (!process.left.empty()) wrong += fmt::format("\n  process {} still holds {}", p, process.left);
        if (process.ended && process.signal == 0 && process.ranks.empty() && !doomed)
            wrong += fmt::format("\n  process {} ended without a report", p);
        for (const Report& report : process.ranks) wrong += complaints(scene, report);
    }
    return wrong.empty() ? good() : bad("{}{}", scene.text(), wrong);
}

}  // namespace ringccl::test
