#include "faults/run.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <string>

#include "faults/footprint.h"
#include "faults/rank.h"

namespace ringccl::faults {
namespace {

constexpr int kWarm = 4;          // calls of every rank before the fault
constexpr int kStartMs = 60'000;  // to join and to make them
constexpr int kFinishMs = 20'000;

pid_t fork_rank(Board& board, const Scene& scene, int rank) {
    std::fflush(nullptr);  // or a child that calls exit() would print it again
    const pid_t parent = getpid(), pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    live(board, scene.fault, {rank, scene.ranks, scene.victim, scene.transport});
    _exit(0);
}

// "rank 1", but not in "rank 12".
bool names(const char* text, int rank) {
    const std::string name = "rank " + std::to_string(rank);
    for (const char* at = std::strstr(text, name.c_str()); at; at = std::strstr(at + 1, name.c_str()))
        if (!std::isdigit(static_cast<unsigned char>(at[name.size()]))) return true;
    return false;
}

const char* name_of(ringResult_t result) {
    static const char* const names[] = {
        "ringSuccess",      "ringUnhandledCudaError", "ringSystemError", "ringInternalError", "ringInvalidArgument",
        "ringInvalidUsage", "ringRemoteError",        "ringInProgress",  "ringTimeout",       "ringMismatch"};
    return size_t(result) < std::size(names) ? names[result] : "another code";
}

// `status`: as waitpid gave it.
nlohmann::json describe(const Seat& seat, int rank, const Scene& scene, int64_t fault_at, int64_t late, int status) {
    nlohmann::json j{{"rank", rank}};
    if (seat.answered == 0 || seat.answered >= late) {
        const bool ended = WIFEXITED(status) || WTERMSIG(status) != SIGKILL;
        j["answer"] = !ended ? "none" : WIFEXITED(status) ? "exit" : strsignal(WTERMSIG(status));
        return j;
    }
    j["answer"] = name_of(seat.result);
    j["text"] = std::string(seat.text, strnlen(seat.text, sizeof(seat.text)));
    j["named"] = names(seat.text, scene.victim);
    if (fault_at) j["ms"] = double(seat.answered - fault_at) / 1e6;
    if (seat.wrong_data) j["wrong_data"] = true;
    if (seat.abort_ns) j["abort_ms"] = double(seat.abort_ns) / 1e6;
    if (!seat.finished) {
        j["destroy"] = "none";  // it did not come back
        return j;
    }
    j["destroy"] = name_of(seat.destroyed);
    j["destroy_ms"] = double(seat.destroy_ns) / 1e6;
    j["left"] = {{"descriptors", seat.descriptors_left}, {"threads", seat.threads_left}, {"mappings", seat.mappings_left}};
    return j;
}

class Crew {
public:
    explicit Crew(const Scene& scene) : scene_(scene), names_before_(shared_names()) {
        for (int r = 0; r < scene.ranks; ++r) pids_.push_back(fork_rank(*board_, scene, r));
    }

    nlohmann::json play(std::mt19937& random) {
        nlohmann::json j{
            {"fault", scene_.fault.name}, {"ranks", scene_.ranks}, {"transport", scene_.transport}, {"victim", scene_.victim}};
        auto warm = [&](const Seat& seat) { return seat.calls >= kWarm || seat.answered != 0; };
        if (!await(kStartMs, [&] { return all(warm, true); })) {
            j["failed"] = "the ranks did not come to work";
        } else if (all([](const Seat& seat) { return seat.answered == 0 || seat.result == ringSuccess; }, true)) {
            inflict(random);
        }
        end();
        for (int r = 0; r < scene_.ranks; ++r) {
            const Seat& seat = board_->seats[r];
            if (seat.answered != 0 && !seat.joined) j["failed"] = std::string("a rank did not join: ") + seat.text;
            nlohmann::json told = describe(seat, r, scene_, board_->fault_at, late_, statuses_[r]);
            if (r == scene_.victim && scene_.fault.deed != Deed::nothing) {
                j["self"] = told;
            } else {
                j["others"].push_back(told);
            }
        }
        std::set<std::string> now = shared_names(), more;
        std::ranges::set_difference(now, names_before_, std::inserter(more, more.end()));
        j["names"] = more;
        return j;
    }

private:
    template <class Condition>
    bool all(Condition condition, bool victim_too) const {
        for (int r = 0; r < scene_.ranks; ++r)
            if ((victim_too || r != scene_.victim) && !condition(board_->seats[r])) return false;
        return true;
    }

    void inflict(std::mt19937& random) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 40'000));
        const Deed deed = scene_.fault.deed;
        const pid_t victim = pids_[scene_.victim];
        board_->told = scene_.fault.held || (deed != Deed::kill && deed != Deed::stop);
        if (scene_.fault.held) {
            await(kFinishMs, [&] { return board_->seats[scene_.victim].holding.load(); });
            // The others come to where they miss it.
            std::this_thread::sleep_for(std::chrono::microseconds(30'000 + random() % 30'000));
        }
        if (deed == Deed::kill || deed == Deed::stop) {
            board_->happens();
            kill(victim, deed == Deed::kill ? SIGKILL : SIGSTOP);
        }
        auto answered = [](const Seat& seat) { return seat.answered != 0; };
        auto finished = [](const Seat& seat) { return seat.finished.load(); };
        if (!await(scene_.limit_s * 1000, [&] { return all(answered, false); })) {
            late_ = board_->fault_at + int64_t(scene_.limit_s) * 1'000'000'000;
            return;
        }
        await(kFinishMs, [&] { return all([&](const Seat& seat) { return !answered(seat) || finished(seat); }, false); });
        if (deed == Deed::stop) kill(victim, SIGCONT);
        if (deed != Deed::kill && deed != Deed::exit) await(kFinishMs, [&] { return finished(board_->seats[scene_.victim]); });
    }

    // Whoever has finished ends by itself; the rest is ended.
    void end() {
        for (int r = 0; r < scene_.ranks; ++r) {
            int status = 0;
            auto reaped = [&] { return waitpid(pids_[r], &status, WNOHANG) == pids_[r]; };
            if (!board_->seats[r].finished || !await(kFinishMs, reaped)) {
                if (!reaped()) {
                    kill(pids_[r], SIGKILL);
                    waitpid(pids_[r], &status, 0);
                }
            }
            statuses_.push_back(status);
        }
    }

    const Scene& scene_;
    std::set<std::string> names_before_;
    SharedBoard board_;
    std::vector<pid_t> pids_;
    std::vector<int> statuses_;
    int64_t late_ = INT64_MAX;  // an answer from then on came only since the run was being ended
};

}  // namespace

nlohmann::json run(const Scene& scene, std::mt19937& random) {
    return Crew(scene).play(random);
}

}  // namespace ringccl::faults
