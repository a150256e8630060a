#include "bootstrap/meeting.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "base/process.h"
#include "base/signals.h"
#include "bootstrap/message_io.h"
#include "bootstrap/reception.h"
#include "trace/log.h"

namespace ringccl {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

// Larger worlds are taken for a mistake; the tables of a meeting grow with it.
constexpr int kMostRanks = 1 << 20;
// How long a failed meeting stays to tell ranks that come too late, at least.
constexpr milliseconds kLinger{5000};
// How long this process stays for those who have not taken their last answer, when they may never come for it.
constexpr milliseconds kLastWords{1000};

// "2, 5-7, 9"
std::string ranges(const std::vector<int>& ranks) {
    std::string text;
    for (size_t i = 0; i < ranks.size();) {
        size_t last = i;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
        text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks[i]);
        if (last > i) text += fmt::format("-{}", ranks[last]);
        i = last + 1;
    }
    return text;
}

class Meeting {
public:
    Meeting(Listening listening, const Secret& secret, uint8_t call)
        : listening_(std::move(listening)),
          secret_(derive(secret, "meeting")),
          context_(1),
          reception_(context_, listening_, secret_, Purpose::meeting, meeting_point(call), strangers_,
                     [this](Socket socket, const Hello& hello) { receive(std::move(socket), hello); }),
          deadline_(context_),
          linger_(context_) {}

    void run() { context_.run(); }
    void stop() { context_.stop(); }  // from any thread

private:
    using Clock = Deadline::Clock;

    struct Member {
        Member(Socket socket, int rank) : socket(std::move(socket)), rank(rank) {}
        Socket socket;
        int rank;
        std::string where;
        bool waiting = false;  // for the answer of the current round
        std::string name() const { return fmt::format("rank {} ({})", rank, where); }
    };
    using MemberPtr = std::shared_ptr<Member>;

    void receive(Socket socket, const Hello& hello);
    awaitable<void> serve(MemberPtr member);
    bool seat(const MemberPtr& member, const json& join);
    void contribute(const MemberPtr& member, const json& message);
    void leave(const MemberPtr& member, const std::string& how);
    void wait_at_most(milliseconds span);
    void time_is_up();
    void complete();
    void conclude(Status verdict);
    void answer(const MemberPtr& member, const json& message);
    awaitable<void> deliver(MemberPtr member, Frame frame);
    void end_if_done();

    Listening listening_;
    const Secret secret_;
    Strangers strangers_;
    asio::io_context context_;
    Reception reception_;
    asio::steady_timer deadline_;  // of the current round
    asio::steady_timer linger_;
    std::optional<Clock::time_point> round_ends_;
    Clock::time_point latest_ = Clock::now();  // latest moment until which some rank said it would wait

    int connections_ = 0;             // open ones
    int64_t version_ = 0;             // of the first to join
    size_t largest_ = 0;              // world size that any rank has given
    std::vector<MemberPtr> members_;  // by rank, once the first has joined; null: not here yet
    std::vector<std::string> texts_;  // of the current round, by rank
    int contributed_ = 0;
    int round_ = 0;                        // 0: joining
    std::optional<std::string> departed_;  // who has left first
    std::optional<Status> verdict_;
    std::set<int> told_;  // ranks that have the verdict, or have left
};

void Meeting::receive(Socket socket, const Hello& hello) {
    auto member = std::make_shared<Member>(std::move(socket), hello.from);
    asio::error_code gone;
    member->where = to_text(endpoint_of(member->socket.remote_endpoint(gone)));
    ++connections_;
    asio::co_spawn(context_, serve(member), asio::detached);
}

awaitable<void> Meeting::serve(MemberPtr member) {
    bool seated = false;
    for (;;) {
        Result<json> message = co_await receive_message(member->socket);
        if (!message.ok()) {
            asio::error_code ignored;
            member->socket.close(ignored);
            --connections_;
            if (seated) leave(member, message.status().text());
            end_if_done();
            co_return;
        }
        if (!seated) seated = seat(member, message.value());
        if (seated) contribute(member, message.value());
    }
}

// Gives the rank its place, if its join does not contradict what others have said.
bool Meeting::seat(const MemberPtr& member, const json& join) {
    int64_t size = number_in(join, "size");
    int64_t version = number_in(join, "version");
    auto turn_away = [&](const std::string& text) {
        Status status(ringInvalidUsage, text);
        // Once all have met, a newcomer's mistake is only the newcomer's.
        if (round_ == 0) conclude(status);
        answer(member, message_of(status));
        return false;
    };
    if (verdict_) {
        answer(member, message_of(*verdict_));
        return false;
    }
    if (size < 1 || size > kMostRanks)
        return turn_away(
            fmt::format("{} gave the world size {}, which is not within 1 and {}", member->name(), size, kMostRanks));
    largest_ = std::max(largest_, static_cast<size_t>(size));
    MemberPtr other;
    for (const MemberPtr& one : members_)
        if (one && !other) other = one;
    if (members_.empty()) {
        members_.resize(static_cast<size_t>(size));
        texts_.resize(static_cast<size_t>(size));
        version_ = version;
    }
    if (version != version_)
        return turn_away(fmt::format("{} runs version {} of the library but {} version {}; all ranks must load the same",
                                     member->name(), version, other->name(), version_));
    if (size != static_cast<int64_t>(members_.size()))
        return turn_away(
            fmt::format("{} gave the world size {} but {} gave {}", member->name(), size, other->name(), members_.size()));
    if (member->rank < 0 || member->rank >= size)
        return turn_away(fmt::format("{} is not within the world size {}; ranks count from 0", member->name(), size));
    MemberPtr& place = members_[static_cast<size_t>(member->rank)];
    if (place && round_ > 0)
        return turn_away(
            fmt::format("{} came to a communicator that is complete, with {} in its place; an id makes one "
                        "communicator only",
                        member->name(), place->name()));
    if (place)
        return turn_away(fmt::format("two processes or threads say that they are rank {}: at {} and at {}", member->rank,
                                     place->where, member->where));
    place = member;
    return true;
}

void Meeting::contribute(const MemberPtr& member, const json& message) {
    wait_at_most(milliseconds(number_in(message, "wait")));
    if (Status theirs = status_in(message); !theirs.ok() && !verdict_)
        conclude(failure(ringRemoteError, "{} cannot go on: {}", member->name(), theirs.text()));
    if (departed_ && !verdict_) conclude(failure(ringRemoteError, "{}", *departed_));
    if (verdict_) return answer(member, message_of(*verdict_));
    if (member->waiting) return;  // it speaks out of turn, which no rank does

    member->waiting = true;
    texts_[static_cast<size_t>(member->rank)] = text_in(message, "text");
    if (++contributed_ == static_cast<int>(members_.size())) complete();
}

// Leaving between rounds is how a rank that needs no more ends; it is a failure for those who still wait for it.
void Meeting::leave(const MemberPtr& member, const std::string& how) {
    if (!departed_)
        departed_ =
            fmt::format("{} {} while the communicator was being made; it ended, was killed or gave up", member->name(), how);
    told_.insert(member->rank);  // who has left need not be told
    if (!verdict_ && (round_ == 0 || contributed_ > 0)) conclude(failure(ringRemoteError, "{}", *departed_));
}

void Meeting::wait_at_most(milliseconds span) {
    auto until = Clock::now() + std::clamp(span, milliseconds(0), milliseconds(std::chrono::hours(24 * 365)));
    latest_ = std::max(latest_, until);
    if (round_ends_ && *round_ends_ <= until) return;
    round_ends_ = until;
    deadline_.expires_at(until);
    deadline_.async_wait([this](asio::error_code cancelled) {
        if (!cancelled) time_is_up();
    });
}

void Meeting::time_is_up() {
    if (verdict_ || !round_ends_ || Clock::now() < *round_ends_) return;
    std::vector<int> missing;
    for (size_t rank = 0; rank < members_.size(); ++rank)
        if (!members_[rank] || !members_[rank]->waiting) missing.push_back(static_cast<int>(rank));
    conclude(failure(ringTimeout, "rank{} {} of {} {} in time; see whether {} and can reach this host",
                     missing.size() > 1 ? "s" : "", ranges(missing), members_.size(),
                     round_ == 0 ? "did not join" : fmt::format("did not come to exchange {}", round_),
                     missing.size() > 1 ? "they run" : "it runs"));
}

void Meeting::complete() {
    Frame frame = framed({{"texts", texts_}});
    if (frame->size() > kMostMessageBytes)
        return conclude(failure(ringInvalidArgument,
                                "the texts of all ranks take {} bytes together, more than the {} of a message", frame->size(),
                                kMostMessageBytes));
    deadline_.cancel();
    round_ends_.reset();
    contributed_ = 0;
    ++round_;
    for (const MemberPtr& member : members_) {
        member->waiting = false;
        texts_[static_cast<size_t>(member->rank)].clear();
        asio::co_spawn(context_, deliver(member, frame), asio::detached);
    }
}

// The same words to everybody: to those who wait now, and to whoever asks later.
void Meeting::conclude(Status verdict) {
    if (verdict_) return;
    verdict_ = std::move(verdict);
    log().debug("meeting point: {}", verdict_->text());
    deadline_.cancel();
    for (const MemberPtr& member : members_)
        if (member && member->waiting) answer(member, message_of(*verdict_));
    linger_.expires_at(std::max(latest_, Clock::now() + kLinger));
    linger_.async_wait([this](asio::error_code cancelled) {
        if (!cancelled) context_.stop();
    });
}

void Meeting::answer(const MemberPtr& member, const json& message) {
    member->waiting = false;
    if (verdict_) told_.insert(member->rank);
    asio::co_spawn(context_, deliver(member, framed(message)), asio::detached);
}

awaitable<void> Meeting::deliver(MemberPtr member, Frame frame) {
    Status sent = co_await send_message(member->socket, frame);
    if (sent.ok()) co_return;
    // Its reader in serve() notices that the connection has ended.
    asio::error_code ignored;
    member->socket.shutdown(Socket::shutdown_both, ignored);
}

void Meeting::end_if_done() {
    bool all_told = verdict_ && largest_ > 0 && told_.size() >= largest_;
    if (connections_ == 0 && (round_ > 0 || all_told)) context_.stop();
}

// The meetings of this process and their threads. A thread that ends by itself detaches itself; when the process ends, those
// that still run are stopped and joined, before what they use (the log, OpenSSL) is taken down.
class Registry {
public:
    static Registry& instance() {
        static Registry* const forever = new Registry;  // a thread may still be unlocking it when statics are destroyed
        static const AtExit stop_them;
        return *forever;
    }

    Status start(std::unique_ptr<Meeting> meeting, const Secret& secret) {
        std::lock_guard lock(mutex_);
        pthread_t thread;
        const SignalsBlocked blocked;
        const int error = ::pthread_create(&thread, nullptr, serve, meeting.get());
        if (error != 0) return system_failure(error, "starting the meeting point's thread");
        threads_.emplace(meeting.release(), Served{thread, secret});
        return {};
    }

    void await_end(const Secret& secret, Deadline deadline, const std::atomic<bool>& stop) {
        constexpr milliseconds kLook{25};
        const auto ended = [&] {
            return std::none_of(threads_.begin(), threads_.end(), [&](auto& entry) { return entry.second.secret == secret; });
        };
        std::unique_lock lock(mutex_);
        while (!deadline.passed() && !stop.load() && !ended_.wait_for(lock, kLook, ended)) continue;
        ended_.wait_until(lock, std::min(deadline.at(), Deadline::Clock::now() + kLastWords), ended);
    }

private:
    struct Served {
        pthread_t thread;
        Secret secret;
    };
    struct AtExit {
        ~AtExit() { instance().stop_all(); }
    };

    static void* serve(void* argument) {
        std::unique_ptr<Meeting> meeting(static_cast<Meeting*>(argument));
        ::pthread_setname_np(::pthread_self(), "ringccl-meet");
        try {
            meeting->run();
        } catch (const std::exception& error) {
            log().error("the meeting point of a communicator has failed: {}", error.what());
        }
        end_digests();  // while the end of the process still waits for this thread
        Registry& registry = instance();
        std::lock_guard lock(registry.mutex_);
        if (registry.threads_.erase(meeting.get()) > 0) ::pthread_detach(::pthread_self());
        registry.ended_.notify_all();
        meeting.reset();
        return nullptr;
    }

    void stop_all() {
        if (owner_ != process_id()) return;  // a forked child has none of the threads, and perhaps a locked mutex
        std::map<Meeting*, Served> threads;
        {
            std::lock_guard lock(mutex_);
            for (auto& [meeting, served] : threads_) meeting->stop();
            threads.swap(threads_);
        }
        timespec limit;
        ::clock_gettime(CLOCK_REALTIME, &limit);
        limit.tv_sec += 1;
        for (auto& [meeting, served] : threads) ::pthread_timedjoin_np(served.thread, nullptr, &limit);
    }

    const int owner_ = process_id();
    std::mutex mutex_;
    std::condition_variable ended_;
    std::map<Meeting*, Served> threads_;
};

}  // namespace

Status start_meeting(Listening listening, const Secret& secret, uint8_t call) {
    return without_exceptions("starting a meeting point", [&] {
        // The log and OpenSSL are in use before there is a registry, so at exit the registry goes first.
        log();
        auto meeting = std::make_unique<Meeting>(std::move(listening), secret, call);
        return Registry::instance().start(std::move(meeting), secret);
    });
}

void await_meeting_end(const Secret& secret, Deadline deadline, const std::atomic<bool>& stop) {
    Registry::instance().await_end(secret, deadline, stop);
}

}  // namespace ringccl
