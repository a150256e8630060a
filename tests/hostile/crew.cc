#include "crew.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <new>

#include "base/deadline.h"
#include "support/case.h"
#include "support/process_ranks.h"

namespace ringccl::test {

Crew::Crew() {
    void* at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) std::abort();
    shared_ = new (at) Shared;
}

Crew::~Crew() {
    munmap(shared_, sizeof(Shared));
}

Verdict Crew::share_id(int rank, ringUniqueId& id) const {
    if (rank == 0) {
        Verdict made = worked(ringGetUniqueId(&shared_->id), "ringGetUniqueId");
        shared_->id_state = made ? 1 : 2;
        id = shared_->id;
        return made;
    }
    if (!await([&] { return shared_->id_state != 0; }, 30000) || shared_->id_state == 2) return bad("rank 0 gave no id");
    id = shared_->id;
    return good();
}

Crew::Phase Crew::phase(int ranks) const {
    for (Phase phase : {resting, working})
        if (shared_->arrived[phase] == ranks) return phase;
    return joining;
}

Verdict Crew::live(const Plan& plan, int rank) const {
    shared_->pids[rank] = getpid();
    if (plan.first)
        if (Verdict v = plan.first(rank); !v) return v;
    ringUniqueId id;
    if (Verdict v = share_id(rank, id); !v) return v;
    if (plan.before)
        if (Verdict v = plan.before(rank); !v) return v;
    Member me{nullptr, rank, plan.world.size};
    ringConfig_t config = plan.world.config();
    bool last = ++shared_->arrived[joining] == me.size;
    auto began = Deadline::Clock::now();
    Verdict made = worked(ringCommInitRankConfig(&me.comm, me.size, id, rank, &config), "ringCommInitRankConfig");
    if (last) shared_->joined_us = (Deadline::Clock::now() - began) / std::chrono::microseconds(1);
    if (!made) return made;
    Verdict verdict = plan.body(me);
    if (!verdict) ringCommAbort(me.comm);
    Verdict destroyed = worked(ringCommDestroy(me.comm), "ringCommDestroy");
    return verdict ? destroyed : verdict;
}

Verdict Crew::run(const Plan& plan) const {
    const int size = plan.world.size;
    return judge_processes(
        size + (plan.beside ? 1 : 0),
        [&](int i) {
            if (i == size) return plan.beside();
            Verdict verdict = live(plan, i);
            ++shared_->ended;
            return verdict;
        },
        plan.seconds);
}

void rest(int ms) {
    timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) ++until.tv_sec, until.tv_nsec -= 1000000000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
}

bool await(const std::function<bool()>& condition, int ms) {
    for (Deadline deadline = Deadline::after(std::chrono::milliseconds(ms)); !condition(); rest(1))
        if (deadline.passed()) return false;
    return true;
}

Verdict mixture(const Member& me, int rounds) {
    constexpr size_t kCounts[] = {0, 1, 1000, 30011, 200003};
    for (int round = 0; round < rounds; ++round) {
        Case c = {.count = kCounts[round % std::size(kCounts)], .in_place = round % 2 == 1, .root = round % me.size};
        for (Kind kind : kReductions) {
            c.kind = kind;
            if (Verdict v = run_case(me, c); !v) return v;
        }
        for (Kind kind : kMoves) {
            c.kind = kind;
            if (kind == Kind::all_to_all) c.in_place = false;
            if (Verdict v = run_case(me, c); !v) return v;
        }
        const int right = (me.rank + 1) % me.size, left = (me.rank + me.size - 1) % me.size;
        int32_t mine = 100 * round + me.rank, theirs = -1;
        ringGroupStart();
        ringSend(&mine, 1, ringInt32, right, me.comm, me.stream);
        ringRecv(&theirs, 1, ringInt32, left, me.comm, me.stream);
        if (Verdict v = worked(ringGroupEnd(), "a group of send and recv"); !v) return v;
        if (me.stream)
            if (Verdict v = worked(ringStreamSynchronize(static_cast<ringStream_t>(me.stream)), "ringStreamSynchronize"); !v)
                return v;
        if (theirs != 100 * round + left) return bad("round {}: {} came from rank {}", round, theirs, left);
    }
    return good();
}

CaughtLog::CaughtLog() : file_(memfd_create("caught", MFD_CLOEXEC)) {
    if (!file_ || fcntl(file_.get(), F_SETFL, O_APPEND) != 0) std::abort();
}

void CaughtLog::catch_stderr() const {
    dup2(file_.get(), STDERR_FILENO);
}

std::string CaughtLog::text() const {
    std::string text;
    char piece[4096];
    for (ssize_t got; (got = pread(file_.get(), piece, sizeof piece, static_cast<off_t>(text.size()))) > 0;)
        text.append(piece, static_cast<size_t>(got));
    return text;
}

}  // namespace ringccl::test
