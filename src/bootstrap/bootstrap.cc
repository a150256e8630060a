#include "bootstrap/bootstrap.h"

#include <sys/socket.h>
#include <unistd.h>

#include <optional>

#include "base/process.h"
#include "bootstrap/dialer.h"
#include "bootstrap/listening.h"
#include "bootstrap/meeting.h"
#include "bootstrap/message_io.h"
#include "bootstrap/unique_id.h"

namespace ringccl {
namespace {

using nlohmann::json;

// How much longer than the rank's own deadline to wait for the meeting point's verdict, which knows who is missing.
constexpr std::chrono::milliseconds kGrace{300};

class MeetingMember final : public Bootstrap {
public:
    explicit MeetingMember(int rank) : rank_(rank) {}
    ~MeetingMember() override { hang_up(); }

    Status reach(const Invitation& invitation, const Settings& settings, Deadline deadline, const std::atomic<bool>& stop);
    Status join(int size, const std::string& mine, Deadline deadline, const std::atomic<bool>& stop);

    const std::vector<std::string>& cards() const override { return cards_; }
    Result<std::vector<std::string>> exchange(const std::string& mine, Deadline deadline,
                                              const std::atomic<bool>& stop) override;
    void fail(const Status& why, Deadline deadline) override;

private:
    // Says something to the meeting point and waits for its answer to all.
    Result<std::vector<std::string>> round(json message, Deadline deadline, const std::atomic<bool>& stop);
    Result<json> ask(json message, Deadline deadline, const std::atomic<bool>& stop);
    const Status& break_off(const Status& why);
    void hang_up();

    const int rank_;
    const int owner_ = process_id();  // process
    Fd socket_;
    bool v6_ = false;
    size_t size_ = 0;
    std::string meeting_;  // its address, for messages
    std::vector<std::string> cards_;
    Status broken_;  // once a round has failed, the connection is out of step
};

Status MeetingMember::reach(const Invitation& invitation, const Settings& settings, Deadline deadline,
                            const std::atomic<bool>& stop) {
    RINGCCL_ASSIGN(auto all, host_interfaces());
    RINGCCL_ASSIGN(auto allowed, choose_interfaces(std::move(all), settings.interface));
    return without_exceptions("opening a loop to reach the meeting point", [&]() -> Status {
        auto begin = Deadline::Clock::now();
        asio::io_context context(1);
        Secret secret = derive(invitation.secret, "meeting");
        Hello hello{Purpose::meeting, rank_, meeting_point(invitation.call), 0, 0};
        Dialer dialer(context, secret, hello, ways_to(endpoints_of(invitation), allowed, settings.interface),
                      [&](Socket socket, const Endpoint& at) {
                          asio::error_code ignored;
                          v6_ = socket.local_endpoint(ignored).protocol() == asio::ip::tcp::v6();
                          meeting_ = to_text(at);
                          socket_.reset(socket.release());
                      });
        Outcome outcome = run_until(context, deadline, stop, [&] { return bool(socket_) || dialer.starved(); });
        if (socket_) return {};
        if (outcome == Outcome::stopped) return failure(ringRemoteError, "joining was aborted in this process");
        if (outcome == Outcome::done)
            return failure(ringSystemError, "rank {} cannot reach the meeting point: {}", rank_, dialer.report());
        std::chrono::duration<double> span = Deadline::Clock::now() - begin;
        return failure(
            ringTimeout,
            "rank {} did not reach the meeting point within {:.1f} s; tried {}. Either the process that made the id has "
            "ended or the id was used before, or RINGCCL_INTERFACE should name a network that the hosts share",
            rank_, span.count(), dialer.report());
    });
}

Status MeetingMember::join(int size, const std::string& mine, Deadline deadline, const std::atomic<bool>& stop) {
    size_ = static_cast<size_t>(size);
    RINGCCL_ASSIGN(cards_, round({{"size", size}, {"version", RINGCCL_VERSION}, {"text", mine}}, deadline, stop));
    return {};
}

Result<std::vector<std::string>> MeetingMember::exchange(const std::string& mine, Deadline deadline,
                                                         const std::atomic<bool>& stop) {
    return round({{"text", mine}}, deadline, stop);
}

void MeetingMember::fail(const Status& why, Deadline deadline) {
    if (!broken_.ok()) return;
    const std::atomic<bool> never{false};
    Result<json> same_in_words_for_all = ask(message_of(why), deadline, never);
    break_off(same_in_words_for_all.ok() ? why : same_in_words_for_all.status());
}

Result<std::vector<std::string>> MeetingMember::round(json message, Deadline deadline, const std::atomic<bool>& stop) {
    if (!broken_.ok()) return broken_;
    Result<json> answer = ask(std::move(message), deadline, stop);
    if (!answer.ok()) return break_off(answer.status());
    if (Status theirs = status_in(answer.value()); !theirs.ok()) return break_off(theirs);

    std::vector<std::string> texts;
    if (auto list = answer.value().find("texts"); list != answer.value().end() && list->is_array())
        for (json& text : *list)
            if (text.is_string()) texts.push_back(std::move(text.get_ref<std::string&>()));
    if (texts.size() != size_)
        return break_off(failure(ringInternalError, "the meeting point at {} answered with {} texts for {} ranks", meeting_,
                                 texts.size(), size_));
    return texts;
}

Result<json> MeetingMember::ask(json message, Deadline deadline, const std::atomic<bool>& stop) {
    return without_exceptions("opening a loop to talk to the meeting point", [&]() -> Result<json> {
        message["wait"] = deadline.left().count();
        asio::io_context context(1);
        Socket socket(context, v6_ ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), socket_.get());
        // Given back before the socket is destroyed, which would close it.
        struct GiveBack {
            Socket& socket;
            ~GiveBack() { socket.release(); }
        } give_back{socket};

        std::optional<Result<json>> answer;
        auto talk = [](Socket& socket, Frame frame, std::optional<Result<json>>& answer) -> awaitable<void> {
            // A meeting point that concluded early answers and closes, so an answer may be there even if sending fails.
            Status sent = co_await send_message(socket, frame);
            if (sent.code() == ringInvalidArgument)
                answer.emplace(sent);
            else
                answer.emplace(co_await receive_message(socket));
        };
        asio::co_spawn(context, talk(socket, framed(message), answer), asio::detached);
        Outcome outcome = run_until(context, Deadline(deadline.at() + kGrace), stop, [&] { return answer.has_value(); });
        if (outcome == Outcome::stopped) return failure(ringRemoteError, "making the communicator was aborted in this process");
        if (outcome == Outcome::deadline)
            return failure(ringTimeout,
                           "rank {} has no answer from the meeting point at {}; that process is stopped or its host gone",
                           rank_, meeting_);
        if (answer->status().code() == ringRemoteError)
            return failure(ringRemoteError,
                           "the meeting point at {} {}; the process that made the id, usually rank 0, has ended", meeting_,
                           answer->status().text());
        return std::move(*answer);
    });
}

// Closes the connection at once: the meeting point then knows that this rank waits for nobody.
const Status& MeetingMember::break_off(const Status& why) {
    broken_ = why;
    hang_up();
    return broken_;
}

// A child that the user has forked holds a copy of the socket, which would keep the connection open; but the child itself must
// not end its parent's.
void MeetingMember::hang_up() {
    if (socket_ && owner_ == process_id()) ::shutdown(socket_.get(), SHUT_RDWR);
    socket_.reset();
}

}  // namespace

Result<ringUniqueId> open_meeting(const Settings& settings) {
    Invitation invitation;
    RINGCCL_TRY(fill_random(invitation.secret));
    RINGCCL_ASSIGN(Listening listening, Listening::open(settings, 0));
    invitation.port = listening.endpoints().front().port;
    for (const Endpoint& endpoint : listening.endpoints()) invitation.addresses.push_back(endpoint.address);
    RINGCCL_TRY(start_meeting(std::move(listening), invitation.secret, invitation.call));
    return pack(invitation);
}

Result<std::unique_ptr<Bootstrap>> Bootstrap::join(const ringUniqueId& id, int rank, int size, const std::string& mine,
                                                   const Settings& settings, Deadline deadline, const std::atomic<bool>& stop) {
    RINGCCL_ASSIGN(Invitation invitation, unpack(id));
    auto member = std::make_unique<MeetingMember>(rank);
    RINGCCL_TRY(member->reach(invitation, settings, deadline, stop));
    RINGCCL_TRY(member->join(size, mine, deadline, stop));
    return std::unique_ptr<Bootstrap>(std::move(member));
}

}  // namespace ringccl
