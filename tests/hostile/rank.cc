#include "rank.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "wire.h"

namespace ringccl::test {
namespace {

constexpr int kInsideUs = 10000;  // from entering a call to being asleep in it
constexpr int kHoldBackMs = 40;   // the others come this much later
constexpr int kDelayMs = 300;
constexpr int kNeverMs = 20000;  // after this the fault that is waited for does not come any more

void pause(int us) {
    std::this_thread::sleep_for(std::chrono::microseconds(us));
}

}  // namespace

Report Rank::live() {
    if (make()) work();
    seat_.answered = true;
    if (!left_ && me_.comm != nullptr) {
        look_back();
        destroy();
    }
    return report_;
}

bool Rank::make() {
    if (me_.rank == 0) {
        const bool made = ringGetUniqueId(&board_.id) == ringSuccess;
        board_.id_state = made ? Board::there : Board::none;
        if (!made) complain(fmt::format("ringGetUniqueId: {}", ringGetLastError(nullptr)));
    } else {
        await(kNeverMs, [&] { return board_.id_state != Board::coming; });
    }
    if (board_.id_state != Board::there) return false;
    WorldOptions options = {.size = me_.size, .transport = scene_.path.transport, .algorithm = scene_.algorithm};
    ringConfig_t config = options.config();
    config.timeoutMs = scene_.timeout_ms;
    config.initTimeoutMs = kNeverMs;
    if (ringCommInitRankConfig(&me_.comm, me_.size, board_.id, me_.rank, &config) != ringSuccess) {
        complain(fmt::format("ringCommInitRankConfig: {}", ringGetLastError(nullptr)));
        return false;
    }
    const bool streamed = std::any_of(scene_.calls.begin(), scene_.calls.end(), [](const Call& c) { return c.streamed; });
    ringStream_t stream = nullptr;
    if (streamed && ringStreamCreate(&stream) != ringSuccess) {
        complain(fmt::format("ringStreamCreate: {}", ringGetLastError(nullptr)));
        return false;
    }
    me_.stream = stream;
    return true;
}

// Whether this rank has made all its calls.
bool Rank::content(int number) const {
    const int one_more = suffers() && scene_.fault == Fault::linger ? 1 : 0;
    return scene_.harmless() && number >= int(scene_.calls.size()) + one_more;
}

void Rank::work() {
    const Deadline start = Deadline::after(std::chrono::milliseconds(kNeverMs));
    for (int number = 0; !content(number); ++number) {
        seat_.call = number;
        if (suffers() && number == scene_.at && suffer_before()) return;
        hold_back(number);
        Answer answer = step(number);
        report_.call = number;
        if (!answer.wrong.empty() && scene_.fault != Fault::corrupt_payload) {
            complain(answer.wrong);
            ringCommAbort(me_.comm);  // or the others would wait
            return;
        }
        if (answer.code != ringSuccess) {
            report_.code = answer.code;
            report_.text = answer.text;
            report_.answered_ms = board_.since_fault();
            return;
        }
        if (scene_.harmless()) continue;
        const double since = board_.since_fault();
        if (since > scene_.bound_ms + kNeverMs / 10 || (since < 0 && start.passed())) {
            complain(since < 0 ? std::string("the fault has not happened")
                               : fmt::format("calls still succeed {:.0f} ms after the fault", since));
            ringCommAbort(me_.comm);
            return;
        }
        if (number > scene_.at) pause(1000);
    }
}

// The others of a scene where the suffering rank is to wait in the call.
void Rank::hold_back(int number) {
    if (scene_.moment != Moment::inside || number != scene_.at || suffers()) return;
    const Board::Seat& other = board_.seats[scene_.rank];
    await(scene_.bound_ms, [&] { return other.entered >= number || other.answered; });
    pause(kHoldBackMs * 1000);
}

// What is done in place of the call, or before it. True: this rank makes no further call.
bool Rank::suffer_before() {
    switch (scene_.fault) {
        case Fault::delay:
            board_.happens();
            pause(kDelayMs * 1000);
            return false;
        case Fault::late:
            board_.happens();
            await(scene_.timeout_ms + scene_.bound_ms, [&] {
                for (int r = 0; r < me_.size; ++r)
                    if (r != me_.rank && !board_.seats[r].answered) return false;
                return true;
            });
            return false;
        case Fault::leave:
            destroy();
            return true;
        case Fault::skip:
            ++skipped_;
            break;
        default:
            break;
    }
    if (scene_.disagrees()) board_.happens();
    if (scene_.moment == Moment::before) suffer();
    return false;
}

// The faults that are events, on whatever thread.
void Rank::suffer() {
    switch (scene_.fault) {
        case Fault::kill:
            board_.happens();
            ::kill(getpid(), SIGKILL);
            break;
        case Fault::exit:
            board_.happens();
            std::exit(0);
        case Fault::stop:
            board_.happens();
            ::kill(getpid(), SIGSTOP);
            break;
        case Fault::cut:
            // Not the connections over which others are still becoming ranks.
            await(scene_.bound_ms, [&] {
                return std::all_of(board_.seats, board_.seats + me_.size, [](const auto& seat) { return seat.call >= 0; });
            });
            board_.happens();
            cut_connections();
            break;
        case Fault::corrupt_header:
        case Fault::corrupt_payload:
            corrupt_next_frame(scene_.byte, [this] { board_.happens(); });
            break;
        case Fault::abort: {
            board_.happens();
            const int64_t begun = Board::now();
            if (ringCommAbort(me_.comm) != ringSuccess) complain(fmt::format("ringCommAbort: {}", ringGetLastError(nullptr)));
            report_.abort_ms = double(Board::now() - begun) / 1e6;
            break;
        }
        default:
            break;
    }
}

Answer Rank::step(int number) {
    const bool here = suffers() && number == scene_.at;
    Call call = scene_.call(number + skipped_);
    if (scene_.fault == Fault::linger && number >= int(scene_.calls.size())) call = Scene::needs_all();
    if (here && scene_.disagrees()) call = scene_.instead(call).value_or(call);
    // After an extra call this rank is one behind.
    if (suffers() && scene_.fault == Fault::extra && number == scene_.at) skipped_ = -1;

    std::thread saboteur;
    if (here && (scene_.moment == Moment::inside || scene_.moment == Moment::during))
        saboteur = std::thread([this, number] {
            await(scene_.bound_ms, [&] { return seat_.entered >= number; });
            pause(scene_.moment == Moment::inside ? kInsideUs : scene_.after_us);
            suffer();
        });
    seat_.entered = number;
    Answer answer = make_call(me_, call);
    if (saboteur.joinable()) saboteur.join();
    return answer;
}

// What must hold after a failure, whatever it was.
void Rank::look_back() {
    if (report_.code == ringSuccess) return;
    ringResult_t state = ringSuccess;
    ringCommGetAsyncError(me_.comm, &state);
    if (state != report_.code)
        complain(fmt::format("the call gave {}, the communicator says {}: {}", ringGetErrorString(ringResult_t(report_.code)),
                             ringGetErrorString(state), ringGetLastError(me_.comm)));
    if (scene_.excludes(me_.rank)) return;
    ask_who_failed();
    if (scene_.shrink && report_.wrong.empty()) shrink();
}

// A death may be known a moment later than the error that it caused.
void Rank::ask_who_failed() {
    const bool dead = scene_.deadly() || scene_.fault == Fault::stop;
    await(dead ? scene_.bound_ms : 0, [&] {
        int ranks[kMostRanks], count = 0;
        if (ringCommGetFailed(me_.comm, ranks, kMostRanks, &count) != ringSuccess) {
            complain(fmt::format("ringCommGetFailed: {}", ringGetLastError(nullptr)));
            return true;
        }
        report_.failed.assign(ranks, ranks + std::clamp(count, 0, kMostRanks));
        int gone = 0;
        for (int r = 0; r < me_.size; ++r) gone += scene_.excludes(r);
        return !dead || count >= gone;
    });
}

void Rank::shrink() {
    std::vector<int> without;
    int before = 0;
    for (int r = 0; r < me_.size; ++r) {
        if (scene_.excludes(r)) without.push_back(r);
        before += r < me_.rank && !scene_.excludes(r);
    }
    Member smaller = {nullptr, before, me_.size - int(without.size())};
    if (ringCommShrink(me_.comm, without.data(), int(without.size()), &smaller.comm, nullptr) != ringSuccess)
        return complain(fmt::format("ringCommShrink: {}", ringGetLastError(nullptr)));
    for (size_t count : {size_t(1), size_t(30001)})
        if (Verdict v = run_case(smaller, {.count = count}); !v) complain(fmt::format("after the shrink: {}", v.message()));
    if (ringCommDestroy(smaller.comm) != ringSuccess) complain("the smaller communicator cannot be destroyed");
}

void Rank::destroy() {
    if (me_.stream && ringStreamDestroy(static_cast<ringStream_t>(me_.stream)) != ringSuccess && report_.code == ringSuccess)
        complain(fmt::format("ringStreamDestroy: {}", ringGetLastError(nullptr)));
    if (scene_.fault == Fault::leave && suffers()) board_.happens();
    const int64_t begun = Board::now();
    if (ringCommDestroy(me_.comm) != ringSuccess) complain(fmt::format("ringCommDestroy: {}", ringGetLastError(nullptr)));
    const double ms = double(Board::now() - begun) / 1e6;
    if (ms > scene_.bound_ms) complain(fmt::format("ringCommDestroy took {:.0f} ms", ms));
    left_ = true;
}

}  // namespace ringccl::test
