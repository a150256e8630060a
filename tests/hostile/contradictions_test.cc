// Ranks that cannot be one communicator: every one of them is told so, soon, in words that name both sides.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <set>

#include "attacker.h"
#include "bootstrap/message.h"
#include "bootstrap/unique_id.h"
#include "crew.h"
#include "support/environment.h"
#include "support/process_ranks.h"

namespace ringccl::test {
namespace {

using Clock = std::chrono::steady_clock;

// What one process of a job that cannot be got for its joining.
struct Answer {
    ringResult_t result;
    std::string text;
    double seconds;
};

Answer join(const ringUniqueId& id, int rank, int size, const char* transport = "auto", int init_ms = 20000) {
    ringConfig_t config = RINGCCL_CONFIG_INITIALIZER;
    config.transport = transport;
    config.initTimeoutMs = init_ms;
    ringComm_t comm = nullptr;
    auto began = Clock::now();
    ringResult_t result = ringCommInitRankConfig(&comm, size, id, rank, &config);
    return {result, ringGetLastError(nullptr), std::chrono::duration<double>(Clock::now() - began).count()};
}

// Whether the answer has one of these codes and all of these words, and came long before the time limit.
Verdict is(const Answer& answer, const std::set<ringResult_t>& codes, const std::vector<std::string>& words) {
    if (!codes.contains(answer.result)) return bad("gave {}: {}", ringGetErrorString(answer.result), answer.text);
    for (const std::string& word : words)
        if (answer.text.find(word) == std::string::npos) return bad("\"{}\" is not in: {}", word, answer.text);
    return answer.seconds < 10 ? good() : bad("took {} s", answer.seconds);
}

class Contradictions : public ::testing::Test {
protected:
    Contradictions() : env_{{"RINGCCL_LOG", "off"}} {}
    // The id, when all processes are there to use it: a machine that starts some late must not look like ranks that come too
    // late.
    static Verdict meet(const Crew& crew, int i, int processes, ringUniqueId& id) {
        Verdict shared = crew.share_id(i, id);
        ++crew->arrived[Crew::joining];
        await([&] { return crew->arrived[Crew::joining] == processes; }, 30000);
        return shared;
    }

    ScopedEnv env_;
    Crew crew_;
};

TEST_F(Contradictions, TwoRanksOfOneNumber) {
    fork_processes(4, [&](int i) {
        ringUniqueId id;
        if (Verdict v = meet(crew_, i, 4, id); !v) return v;
        return is(join(id, i == 3 ? 1 : i, 4), {ringInvalidUsage}, {"rank 1", ": at ", " and at "});
    });
}

TEST_F(Contradictions, DifferentSizes) {
    fork_processes(3, [&](int i) {
        ringUniqueId id;
        if (Verdict v = meet(crew_, i, 3, id); !v) return v;
        return is(join(id, i, i == 1 ? 4 : 3), {ringInvalidUsage}, {"rank 1", "world size", "3", "4"});
    });
}

// The id of a communicator that has been made, and is gone: there is no meeting point any more.
TEST_F(Contradictions, AnIdThatWasUsed) {
    fork_processes(3, [&](int i) {
        ringUniqueId id;
        if (Verdict v = crew_.share_id(i, id); !v) return v;
        ringComm_t comm = nullptr;
        if (Verdict v = worked(ringCommInitRank(&comm, 3, id, i), "ringCommInitRank"); !v) return v;
        if (Verdict v = worked(ringCommDestroy(comm), "ringCommDestroy"); !v) return v;
        ++crew_->arrived[Crew::working];
        await([&] { return crew_->arrived[Crew::working] == 3; }, 30000);
        return is(join(id, i, 3, "auto", 1000), {ringTimeout, ringInvalidUsage}, {"id was used before", "tried 1"});
    });
}

// The same while the communicator is there: who comes second is told, the others do not notice.
TEST_F(Contradictions, AnIdThatIsInUse) {
    fork_processes(3, [&](int i) {
        ringUniqueId id;
        if (Verdict v = crew_.share_id(i, id); !v) return v;
        if (i == 2) {
            await([&] { return crew_->arrived[Crew::working] == 2; }, 30000);
            Verdict told = is(join(id, 1, 2, "auto", 1000), {ringTimeout, ringInvalidUsage}, {"id"});
            crew_->word[0] = 1;
            return told;
        }
        Member me{nullptr, i, 2};
        if (Verdict v = worked(ringCommInitRank(&me.comm, 2, id, i), "ringCommInitRank"); !v) return v;
        ++crew_->arrived[Crew::working];
        await([&] { return crew_->word[0] == 1; }, 30000);
        if (Verdict v = mixture(me, 2); !v) return v;
        return worked(ringCommDestroy(me.comm), "ringCommDestroy");
    });
}

// A rank that says by hand what another version of the library would say.
Answer join_as_version(const ringUniqueId& id, int rank, int size, int version) {
    auto began = Clock::now();
    auto answer = [&](ringResult_t result, const std::string& text) {
        return Answer{result, text, std::chrono::duration<double>(Clock::now() - began).count()};
    };
    auto invitation = unpack(id);
    if (!invitation.ok()) return answer(ringInternalError, invitation.status().text());
    Fd fd;
    if (!await([&] { return bool(fd = knock(invitation.value().port)); }, 5000)) return answer(ringInternalError, "no port");
    timeval patience{15, 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    write_bytes(fd, {"ringccl\1", 8});
    const std::string greeting = read_bytes(fd, 40);
    if (greeting.size() != 40) return answer(ringInternalError, "no greeting");
    write_bytes(fd, claim(derive(invitation.value().secret, "meeting"), greeting.substr(8), {.from = uint32_t(rank)}));
    if (read_bytes(fd, 32).size() != 32) return answer(ringInternalError, "turned away");
    write_bytes(fd, "\6" + *framed({{"size", size}, {"version", version}, {"text", ""}, {"wait", 10000}}));
    const std::string head = read_bytes(fd, 4);
    if (head.size() != 4) return answer(ringInternalError, "no answer");
    size_t bytes = 0;
    for (char byte : head) bytes = bytes << 8 | static_cast<uint8_t>(byte);
    auto message = parse_message(read_bytes(fd, bytes));
    if (!message.ok()) return answer(ringInternalError, message.status().text());
    Status status = status_in(message.value());
    return answer(status.code(), status.text());
}

TEST_F(Contradictions, AnotherVersion) {
    constexpr int kOther = RINGCCL_VERSION + 7;
    fork_processes(3, [&](int i) {
        ringUniqueId id;
        if (Verdict v = meet(crew_, i, 3, id); !v) return v;
        Answer answer = i == 1 ? join_as_version(id, 1, 3, kOther) : join(id, i, 3);
        return is(answer, {ringInvalidUsage},
                  {"rank 1", fmt::format("version {}", kOther), fmt::format("version {}", RINGCCL_VERSION)});
    });
}

// Transports that have nothing in common: rank 0 has one that the others have not.
TEST_F(Contradictions, TransportsThatDoNotMeet) {
    for (bool swapped : {false, true}) {
        SCOPED_TRACE(swapped);
        Crew crew;
        fork_processes(3, [&](int i) {
            ringUniqueId id;
            if (Verdict v = meet(crew, i, 3, id); !v) return v;
            // All hear the words of the rank that was first to say so.
            return is(join(id, i, 3, (i == 0) != swapped ? "p2p" : "tcp"), {ringInvalidUsage, ringRemoteError},
                      {"rank 0", "finds no transport to rank", "RINGCCL_TRANSPORT"});
        });
    }
}

// The process that made the id has ended before anybody came.
TEST_F(Contradictions, TheMakerOfTheIdIsGone) {
    fork_processes(3, [&](int i) {
        ringUniqueId id;
        if (Verdict v = crew_.share_id(i, id); !v || i == 0) {
            crew_->word[0] = getpid();
            return v;
        }
        await([&] { return crew_->word[0] != 0 && ports_of(crew_->word[0]).empty(); }, 30000);
        return is(join(id, i, 3, "auto", 1500), {ringTimeout, ringRemoteError},
                  {"meeting point", "127.0.0.1:", "process that made the id has ended"});
    });
}

TEST_F(Contradictions, WhoIsMissingIsListed) {
    fork_processes(3, [&](int i) {
        ringUniqueId id;
        if (Verdict v = meet(crew_, i, 3, id); !v) return v;
        return is(join(id, 2 * i, 6, "auto", 1000), {ringTimeout}, {"ranks 1, 3, 5 of 6 did not join"});
    });
}

}  // namespace
}  // namespace ringccl::test
