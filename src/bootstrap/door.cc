#include "bootstrap/door.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "bootstrap/dialer.h"
#include "bootstrap/reception.h"

namespace ringccl {
namespace {

constexpr std::chrono::milliseconds kLastWords{250};

class TcpDoor final : public Door {
public:
    TcpDoor(const Secret& secret, int rank, const Settings& settings, Listening listening)
        : secret_(secret), rank_(rank), filter_(settings.interface), listening_(std::move(listening)) {}

    const std::vector<Endpoint>& endpoints() const override { return listening_.endpoints(); }
    uint64_t strangers() const override { return strangers_.count(); }
    Result<std::vector<Fd>> meet(std::span<const Wish> wishes, const Presence& presence, Deadline deadline,
                                 const std::atomic<bool>& stop) override;

private:
    using Key = std::tuple<int, int, int>;  // peer, lane, index
    static Key key(const Wish& wish) { return {wish.peer, wish.lane, wish.index}; }

    // Plain and non-blocking, as the caller wants it.
    static Fd plain(Socket socket) {
        socket.native_non_blocking(true);
        return Fd(socket.release());
    }

    const Secret secret_;
    const int rank_;
    const std::string filter_;
    Listening listening_;
    Strangers strangers_;
    std::map<Key, Fd> arrived_;          // here, and perhaps not wished for yet
    std::vector<Admitted> unconfirmed_;  // almost here when the last meet() ended
};

Result<std::vector<Fd>> TcpDoor::meet(std::span<const Wish> wishes, const Presence& presence, Deadline deadline,
                                      const std::atomic<bool>& stop) {
    if (wishes.empty()) return std::vector<Fd>();
    return without_exceptions("opening a loop for connections", [&]() -> Result<std::vector<Fd>> {
        auto begin = Deadline::Clock::now();
        asio::io_context context(1);
        Reception reception(context, listening_, secret_, Purpose::lane, rank_, strangers_,
                            [&](Socket socket, const Hello& hello) {
                                // The newest counts: a dialer that comes again has given the earlier one up.
                                arrived_[{hello.from, hello.lane, hello.index}] = plain(std::move(socket));
                            });
        reception.resume(std::exchange(unconfirmed_, {}));

        std::vector<Fd> dialed(wishes.size());
        std::vector<std::optional<Dialer>> dialers(wishes.size());
        for (size_t i = 0; i < wishes.size(); ++i) {
            const Wish& wish = wishes[i];
            if (!wish.dial) continue;
            Hello hello{Purpose::lane, rank_, wish.peer, wish.lane, wish.index};
            dialers[i].emplace(context, secret_, hello, ways_to(wish.at, listening_.interfaces(), filter_),
                               [&dialed, i](Socket socket, const Endpoint&) { dialed[i] = plain(std::move(socket)); });
        }

        auto have = [&](size_t i) { return wishes[i].dial ? bool(dialed[i]) : arrived_.contains(key(wishes[i])); };
        size_t first_missing = 0;
        auto starved = [&] {
            return reception.starved() ||
                   std::any_of(dialers.begin(), dialers.end(), [](auto& dialer) { return dialer && dialer->starved(); });
        };
        // What a peer confirmed before it went may still lie in the socket.
        std::optional<Deadline> last_words;
        auto abandoned = [&] {
            if (!presence.gone(wishes[first_missing].peer)) return false;
            if (!last_words) last_words = Deadline::after(kLastWords);
            return last_words->passed();
        };
        Outcome outcome = run_until(context, deadline, stop, [&] {
            while (first_missing < wishes.size() && have(first_missing)) ++first_missing;
            return first_missing == wishes.size() || starved() || abandoned();
        });
        unconfirmed_ = reception.retire();

        if (outcome == Outcome::stopped) return failure(ringRemoteError, "connecting was aborted in this process");
        if (first_missing < wishes.size() && presence.gone(wishes[first_missing].peer))
            return failure(ringRemoteError, "rank {} has left the communicator, to which rank {} was making a connection",
                           wishes[first_missing].peer, rank_);
        if (first_missing < wishes.size()) {
            std::string missing;
            for (size_t i = 0; i < wishes.size(); ++i) {
                if (have(i)) continue;
                missing += fmt::format("{}rank {} (lane {}, socket {}; {})", missing.empty() ? "" : ", ", wishes[i].peer,
                                       wishes[i].lane, wishes[i].index,
                                       wishes[i].dial ? "tried " + dialers[i]->report() : "it did not dial in");
            }
            std::chrono::duration<double> span = Deadline::Clock::now() - begin;
            return failure(outcome == Outcome::deadline ? ringTimeout : ringSystemError,
                           "rank {} was not connected after {:.1f} s to {}{}{}", rank_, span.count(), missing,
                           reception.trouble().empty() ? "" : "; ", reception.trouble());
        }
        for (size_t i = 0; i < wishes.size(); ++i)
            if (!wishes[i].dial) dialed[i] = std::move(arrived_.extract(key(wishes[i])).mapped());
        return dialed;
    });
}

}  // namespace

Result<std::unique_ptr<Door>> Door::open(const Secret& secret, int rank, const Settings& settings) {
    RINGCCL_ASSIGN(Listening listening, Listening::open(settings, 0));
    return std::unique_ptr<Door>(new TcpDoor(secret, rank, settings, std::move(listening)));
}

}  // namespace ringccl
