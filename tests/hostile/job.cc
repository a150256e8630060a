#include "job.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/fd.h"
#include "holdings.h"

namespace ringccl::test {
namespace {

constexpr int kLeftMs = 3000;  // threads and sockets that were told to go are gone by then

void set_environment(const Scene& scene, int process) {
    ScopedEnv* env = new ScopedEnv;  // for the life of the process
    scene.path.apply(*env);
    env->set("RINGCCL_SLICE_BYTES", "4096");
    env->set("RINGCCL_HEARTBEAT_MS", std::to_string(scene.heartbeat_ms));
    if (scene.hosts) env->set("RINGCCL_HOST_ID", fmt::format("host{}", process / 2));
    setenv("RINGCCL_LOG", "off", 0);
}

// The whole life of one process.
nlohmann::json live(const Scene& scene, Board& board, int process) {
    set_environment(scene, process);
    const int first = process * scene.per_process;
    const int last = std::min(first + scene.per_process, scene.ranks);
    std::vector<Report> reports(last - first);
    const Holdings before = Holdings::now();
    if (last - first == 1) {
        reports[0] = Rank(scene, board, first).live();
    } else {
        std::vector<std::thread> threads;
        for (int r = first; r < last; ++r) threads.emplace_back([&, r] { reports[r - first] = Rank(scene, board, r).live(); });
        for (std::thread& thread : threads) thread.join();
    }
    return {{"ranks", reports}, {"left", left_behind(before, kLeftMs)}};
}

class Job {
public:
    explicit Job(const Scene& scene) : scene_(scene), children_(scene.processes()) {}

    Outcome run(int limit_s);

private:
    struct Child {
        pid_t pid = -1;
        Fd words;
        std::string said;
        bool done = false;
    };

    void fork_child(int process);
    void listen(int ms);
    void act();
    bool over() const {
        return std::all_of(children_.begin(), children_.end(), [](const Child& c) { return c.done; });
    }
    std::string whereabouts(int process) const;
    Outcome::Process reap(int process);

    const Scene& scene_;
    SharedBoard board_;
    std::vector<Child> children_;
    bool acted_ = false, resumed_ = false;
};

void Job::fork_child(int process) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    Fd read(ends[0]), write(ends[1]);
    std::fflush(nullptr);  // or the child would print the parent's buffered output again
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid != 0) {
        children_[process].pid = pid;
        children_[process].words = std::move(read);
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // the parent went before prctl
    for (Child& sibling : children_) sibling.words.reset();
    read.reset();
    const std::string words = live(scene_, *board_, process).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    for (size_t at = 0; at < words.size();) {
        const ssize_t written = ::write(write.get(), words.data() + at, words.size() - at);
        if (written <= 0) break;
        at += written;
    }
    _exit(0);
}

// Reads what the children say, for at most `ms`.
void Job::listen(int ms) {
    std::vector<pollfd> ready;
    std::vector<Child*> whose;
    for (Child& child : children_)
        if (!child.done) {
            ready.push_back({child.words.get(), POLLIN, 0});
            whose.push_back(&child);
        }
    if (poll(ready.data(), ready.size(), ms) <= 0) return;
    for (size_t i = 0; i < ready.size(); ++i) {
        if (ready[i].revents == 0) continue;
        char words[4096];
        const ssize_t bytes = read(ready[i].fd, words, sizeof words);
        if (bytes > 0)
            whose[i]->said.append(words, bytes);
        else
            whose[i]->done = true;
    }
}

// What is done to the suffering rank's process from outside.
void Job::act() {
    const pid_t pid = children_[scene_.process_of(scene_.rank)].pid;
    const Board::Seat& seat = board_->seats[scene_.rank];
    if (!acted_ && scene_.moment == Moment::outside && seat.entered >= scene_.at) {
        acted_ = true;
        std::this_thread::sleep_for(std::chrono::microseconds(scene_.after_us));
        board_->happens();
        kill(pid, scene_.fault == Fault::stop ? SIGSTOP : SIGKILL);
    }
    if (scene_.fault == Fault::stop && !resumed_) {
        bool answered = board_->since_fault() >= 0;
        for (int r = 0; r < scene_.ranks; ++r) answered = answered && (scene_.beside(r) || board_->seats[r].answered);
        if (answered) {
            resumed_ = true;
            kill(pid, SIGCONT);
        }
    }
}

std::string Job::whereabouts(int process) const {
    std::string where;
    for (int r = 0; r < scene_.ranks; ++r) {
        if (scene_.process_of(r) != process) continue;
        const Board::Seat& seat = board_->seats[r];
        const int call = seat.call;
        where += fmt::format("rank {} {} {}{}; ", r,
                             call < 0               ? "makes its communicator"
                             : seat.entered >= call ? "has entered call"
                                                    : "is before call",
                             call, seat.answered ? " and has its answer" : "");
        if (call >= 0) where += scene_.call(call).text() + "; ";
    }
    return where;
}

Outcome::Process Job::reap(int process) {
    Child& child = children_[process];
    Outcome::Process result;
    result.ended = child.done;
    if (!child.done) {
        result.hang = whereabouts(process);
        if (std::getenv("RINGCCL_TEST_BACKTRACE")) [[maybe_unused]]
            int said = std::system(fmt::format("gdb -p {} -batch -ex 'thread apply all bt' >&2", child.pid).c_str());
        kill(child.pid, SIGKILL);
    }
    int status = 0;
    waitpid(child.pid, &status, 0);
    if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
    const auto said = nlohmann::json::parse(child.said, nullptr, false);
    if (said.is_object()) {
        result.ranks = said["ranks"].get<std::vector<Report>>();
        result.left = said["left"];
    }
    return result;
}

Outcome Job::run(int limit_s) {
    for (int p = 0; p < scene_.processes(); ++p) fork_child(p);
    const bool acts = scene_.moment == Moment::outside || scene_.fault == Fault::stop;
    for (const Deadline deadline = Deadline::after(std::chrono::seconds(limit_s)); !over() && !deadline.passed();) {
        if (acts) act();
        listen(acts && !(acted_ && resumed_) ? 1 : 50);
    }
    Outcome outcome;
    for (int p = 0; p < scene_.processes(); ++p) outcome.processes.push_back(reap(p));
    return outcome;
}

}  // namespace

const Report* Outcome::report_of(int rank) const {
    for (const Process& process : processes)
        for (const Report& report : process.ranks)
            if (report.rank == rank) return &report;
    return nullptr;
}

double Outcome::worst_ms() const {
    double worst = 0;
    for (const Process& process : processes)
        for (const Report& report : process.ranks) worst = std::max(worst, report.answered_ms);
    return worst;
}

Outcome run_job(const Scene& scene, int limit_s) {
    return Job(scene).run(limit_s);
}

}  // namespace ringccl::test
