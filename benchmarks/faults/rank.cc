#include "faults/rank.h"

#include <unistd.h>

#include <optional>
#include <thread>

#include "faults/footprint.h"
#include "faults/work.h"

namespace ringccl::faults {
namespace {

constexpr int kCallsWithoutFault = 20;
constexpr int kPatienceMs = 10'000;  // of one who stays away until the others have answered
constexpr int kSettleMs = 1000;      // for threads that were told to end

ringResult_t join(Board& board, const Fault& fault, const Place& place, ringComm_t* comm) {
    if (place.rank == 0) {
        ringResult_t made = ringGetUniqueId(&board.id);
        board.id_state = made == ringSuccess ? 1 : -1;
        if (made != ringSuccess) return made;
    }
    if (!await(kPatienceMs, [&] { return board.id_state != 0; }) || board.id_state < 0) return ringSystemError;
    ringConfig_t config = RINGCCL_CONFIG_INITIALIZER;
    config.transport = place.transport;
    config.timeoutMs = fault.timeout_ms;
    return ringCommInitRankConfig(comm, place.size, board.id, place.rank, &config);
}

// What the victim does instead of its next call. nullopt: nothing, it goes on.
std::optional<ringResult_t> act(Board& board, const Fault& fault, const Place& place, Worker& worker, ringComm_t comm,
                                int index) {
    auto others_answered = [&] {
        for (int r = 0; r < place.size; ++r)
            if (r != place.victim && board.seats[r].answered == 0) return false;
        return true;
    };
    switch (fault.deed) {
        case Deed::nothing:
        case Deed::abort:
        case Deed::kill:
        case Deed::stop:
            if (!fault.held) return std::nullopt;
            board.seats[place.rank].holding = true;
            for (;;) pause();
        case Deed::exit:
            board.happens();
            std::exit(0);
        case Deed::destroy:
            board.happens();
            return ringCommDestroy(comm);
        case Deed::stay_away:
            board.happens();
            await(kPatienceMs, others_answered);
            return worker.once(index);
        case Deed::other_count:
        case Deed::other_type:
        case Deed::other_collective:
            board.happens();
            return worker.deviate(index, fault.deed);
    }
    return std::nullopt;
}

// Until a call fails, or the victim has destroyed its communicator.
ringResult_t work(Board& board, const Fault& fault, const Place& place, Worker& worker, ringComm_t comm) {
    Seat& seat = board.seats[place.rank];
    bool acted = place.rank != place.victim;
    for (int index = 0;; ++index) {
        if (fault.deed == Deed::nothing && index == kCallsWithoutFault) return ringSuccess;
        seat.calls = index;
        std::optional<ringResult_t> result;
        if (!acted && board.told) {
            acted = true;
            result = act(board, fault, place, worker, comm, index);
            if (result && fault.deed == Deed::destroy) return *result;
        }
        if (!result) result = worker.once(index);
        if (*result != ringSuccess) return *result;
    }
}

}  // namespace

void live(Board& board, const Fault& fault, const Place& place) {
    setenv("RINGCCL_LOG", "off", 0);
    if (fault.heartbeat_ms) setenv("RINGCCL_HEARTBEAT_MS", fault.heartbeat_ms, 1);
    Seat& seat = board.seats[place.rank];
    const Footprint before = Footprint::now();

    ringComm_t comm = nullptr;
    seat.result = join(board, fault, place, &comm);
    if (seat.result != ringSuccess) {
        seat.say(ringGetLastError(nullptr));
        seat.answered = now_ns();
        seat.finished = true;
        return;
    }
    seat.joined = true;

    std::thread aborter;
    if (fault.deed == Deed::abort && place.rank == place.victim) {
        aborter = std::thread([&] {
            if (!await(kPatienceMs, [&] { return board.told.load(); })) return;
            board.happens();
            ringCommAbort(comm);
            seat.abort_ns = now_ns() - board.fault_at;
        });
    }
    bool gone = fault.deed == Deed::destroy && place.rank == place.victim;
    {
        Worker worker(comm, place.rank, place.size, fault.work);
        seat.result = work(board, fault, place, worker, comm);
        const int64_t answered = now_ns();
        gone &= board.fault_at != 0;
        if (gone) {
            seat.destroyed = seat.result;
            seat.destroy_ns = answered - board.fault_at;
        }
        if (seat.result != ringSuccess) seat.say(ringGetLastError(gone ? nullptr : comm));
        seat.wrong_data = worker.wrong();
        seat.answered = answered;
    }
    if (aborter.joinable()) aborter.join();
    if (!gone) {
        const int64_t begin = now_ns();
        seat.destroyed = ringCommDestroy(comm);
        seat.destroy_ns = now_ns() - begin;
    }

    await(kSettleMs, [&] { return Footprint::now().within(before); });
    const Footprint after = Footprint::now();
    seat.descriptors_left = after.descriptors - before.descriptors;
    seat.threads_left = after.threads - before.threads;
    seat.mappings_left = after.shared_mappings - before.shared_mappings;
    seat.finished = true;
}

}  // namespace ringccl::faults
