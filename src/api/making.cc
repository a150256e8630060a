// Making, deriving, asking about and ending communicators.
#include <algorithm>
#include <cstring>

#include "api/arguments.h"
#include "api/entry.h"
#include "api/group.h"
#include "device/cuda_module.h"

using namespace ringccl;

namespace {

Status init_rank(const char* name, ringComm_t* comm, int size, const ringUniqueId& id, int rank, const ringConfig_t* config) {
    if (comm == nullptr) return failure(ringInvalidArgument, "{}: comm is NULL", name);
    RINGCCL_TRY(check_world(name, rank, size));
    RINGCCL_TRY(secret_of(id).status());
    RINGCCL_ASSIGN(const Settings settings, settings_for(name, config));
    return Group::of_thread().submit(comm, id, rank, size, settings);
}

// An all-gather of a value from each rank over the communicator itself.
template <class Value>
Result<std::vector<Value>> gather(Communicator& comm, const Value& mine) {
    std::vector<Value> values(static_cast<size_t>(comm.size()) + 1, mine);  // all, then this rank's own
    Value* const own = &values[comm.size()];
    std::shared_ptr<void> lease;
    if (PeerMemory* memory = comm.device().peer_memory()) {
        RINGCCL_ASSIGN(lease, memory->reach(reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof mine, true));
    }
    const Call call{"ringCommSplit", Kind::all_gather, own, values.data(), sizeof mine, ringUint8};
    RINGCCL_ASSIGN(const Operation operation, check(call, comm));
    RINGCCL_TRY(comm.run({&operation, 1}));
    values.pop_back();
    return values;
}

Status split(ringComm_t handle, int color, int key, ringComm_t* result, const ringConfig_t* config) {
    if (result == nullptr) return failure(ringInvalidArgument, "ringCommSplit: newComm is NULL");
    if (color < RINGCCL_SPLIT_NOCOLOR)
        return failure(ringInvalidArgument, "ringCommSplit: color {} is negative; use RINGCCL_SPLIT_NOCOLOR to stay out",
                       color);
    RINGCCL_ASSIGN(CommPin comm, find_working(handle, "ringCommSplit"));
    RINGCCL_ASSIGN(const Settings settings, settings_for("ringCommSplit", config, &comm->settings()));

    struct Choice {
        int color, key;
    };
    RINGCCL_ASSIGN(const std::vector<Choice> choices, gather(*comm, Choice{color, key}));
    std::vector<int> members;
    for (int r = 0; r < comm->size(); ++r)
        if (choices[r].color == color) members.push_back(r);
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) { return choices[a].key < choices[b].key; });

    // The first of each color makes the id; an id that could not be made stays zero, which its members notice.
    ringUniqueId id{};
    Status opened;
    if (color >= 0 && members.front() == comm->rank()) {
        auto meeting = open_meeting(settings);
        opened = meeting.status();
        if (meeting.ok()) id = meeting.value();
    }
    RINGCCL_ASSIGN(const std::vector<ringUniqueId> ids, gather(*comm, id));
    RINGCCL_TRY(opened);
    if (color < 0) {
        *result = nullptr;
        return {};
    }
    const ringUniqueId& chosen = ids[members.front()];
    if (!secret_of(chosen).ok())
        return failure(ringRemoteError, "ringCommSplit: rank {} could not open a meeting point for color {}", members.front(),
                       color);
    const auto me = std::find(members.begin(), members.end(), comm->rank()) - members.begin();
    return make_communicator(chosen, static_cast<int>(me), static_cast<int>(members.size()), settings, result);
}

Status shrink(ringComm_t handle, const int* excluded, int count, ringComm_t* result, const ringConfig_t* config) {
    if (result == nullptr) return failure(ringInvalidArgument, "ringCommShrink: newComm is NULL");
    if (count < 0 || (count > 0 && excluded == nullptr))
        return failure(ringInvalidArgument, "ringCommShrink: {} excluded ranks at {}", count,
                       static_cast<const void*>(excluded));
    RINGCCL_ASSIGN(CommPin comm, find_made(handle, "ringCommShrink"));
    RINGCCL_ASSIGN(const Settings settings, settings_for("ringCommShrink", config, &comm->settings()));
    std::vector<bool> stays(comm->size(), true);
    for (int i = 0; i < count; ++i) {
        if (excluded[i] < 0 || excluded[i] >= comm->size() || excluded[i] == comm->rank())
            return failure(ringInvalidArgument, "ringCommShrink: excluded rank {} is {}", excluded[i],
                           excluded[i] == comm->rank() ? "the caller itself" : "out of range");
        stays[excluded[i]] = false;
    }
    std::vector<int> members;
    for (int r = 0; r < comm->size(); ++r)
        if (stays[r]) members.push_back(r);
    RINGCCL_ASSIGN(const ringUniqueId id, comm->meeting_of(members, settings));
    const auto me = std::find(members.begin(), members.end(), comm->rank()) - members.begin();
    return make_communicator(id, static_cast<int>(me), static_cast<int>(members.size()), settings, result);
}

// Of ringCommInitAll: where the config does not name a CUDA device, ranks are dealt out over all.
Settings settings_of_member(int rank, const ringConfig_t* config, Settings settings) {
    if (settings.cuda_device < 0 || config->deviceIndex >= 0) return settings;
    const auto cuda = cuda_module(settings.cuda_module);
    const auto count = cuda.ok() ? cuda.value()->device_count() : cuda.status();
    if (count.ok()) settings.cuda_device = rank % count.value();
    return settings;
}

template <class Get>
ringResult_t ask(const char* name, ringComm_t handle, int* result, Get get) {
    return entry(name, [&]() -> Status {
        if (result == nullptr) return failure(ringInvalidArgument, "{}: the result pointer is NULL", name);
        RINGCCL_ASSIGN(CommPin comm, find_communicator(handle, name));
        *result = get(*comm);
        return {};
    });
}

}  // namespace

ringResult_t ringGetUniqueId(ringUniqueId* id) {
    return entry("ringGetUniqueId", [&]() -> Status {
        if (id == nullptr) return failure(ringInvalidArgument, "ringGetUniqueId: id is NULL");
        RINGCCL_ASSIGN(const Settings settings, settings_from_environment());
        RINGCCL_ASSIGN(*id, open_meeting(settings));
        return {};
    });
}

ringResult_t ringCommInitRank(ringComm_t* comm, int worldSize, ringUniqueId id, int rank) {
    return ringCommInitRankConfig(comm, worldSize, id, rank, nullptr);
}

ringResult_t ringCommInitRankConfig(ringComm_t* comm, int worldSize, ringUniqueId id, int rank, const ringConfig_t* config) {
    return entry("ringCommInitRank", [&] {
        Status status = init_rank("ringCommInitRank", comm, worldSize, id, rank, config);
        if (!status.ok()) Group::of_thread().spoil(status);
        return status;
    });
}

ringResult_t ringCommInitAll(ringComm_t* comms, int worldSize, const ringConfig_t* config) {
    return entry("ringCommInitAll", [&]() -> Status {
        if (comms == nullptr) return failure(ringInvalidArgument, "ringCommInitAll: comms is NULL");
        RINGCCL_TRY(check_world("ringCommInitAll", 0, worldSize));
        RINGCCL_ASSIGN(const Settings settings, settings_for("ringCommInitAll", config));
        RINGCCL_ASSIGN(const ringUniqueId id, open_meeting(settings));
        Group together;
        together.start();
        std::vector<ringComm_t> made(worldSize, nullptr);
        for (int r = 0; r < worldSize; ++r)
            RINGCCL_TRY(together.submit(&made[r], id, r, worldSize, settings_of_member(r, config, settings)));
        Status status = together.end();
        if (status.ok())
            std::copy(made.begin(), made.end(), comms);
        else
            for (ringComm_t comm : made)
                if (comm != nullptr) ringCommDestroy(comm);
        return status;
    });
}

ringResult_t ringCommInitEnv(ringComm_t* comm, const ringConfig_t* config) {
    return entry("ringCommInitEnv", [&]() -> Status {
        if (comm == nullptr) return failure(ringInvalidArgument, "ringCommInitEnv: comm is NULL");
        RINGCCL_ASSIGN(const Settings settings, settings_for("ringCommInitEnv", config));
        RINGCCL_ASSIGN(const Placement place, placement_from_environment(settings));
        RINGCCL_TRY(check_world("ringCommInitEnv", place.rank, place.size));
        return make_communicator(place.id, place.rank, place.size, settings, comm);
    });
}

ringResult_t ringCommFinalize(ringComm_t comm) {
    return entry("ringCommFinalize", [&]() -> Status {
        RINGCCL_ASSIGN(CommPin pin, find_communicator(comm, "ringCommFinalize"));
        return pin->finalize();
    });
}

ringResult_t ringCommDestroy(ringComm_t comm) {
    return entry("ringCommDestroy", [&]() -> Status {
        {
            RINGCCL_ASSIGN(CommPin pin, find_communicator(comm, "ringCommDestroy"));
            // What went wrong earlier was reported then; destroying a failed communicator is no failure.
            if (!pin->finalized()) (void)pin->finalize().ok();
        }
        if (communicators().remove(reinterpret_cast<uint64_t>(comm)) == nullptr)
            return failure(ringInvalidUsage, "ringCommDestroy: two threads destroy {} at once", static_cast<void*>(comm));
        return {};
    });
}

ringResult_t ringCommAbort(ringComm_t comm) {
    return entry("ringCommAbort", [&]() -> Status {
        RINGCCL_ASSIGN(CommPin pin, find_communicator(comm, "ringCommAbort"));
        pin->abort();
        return {};
    });
}

ringResult_t ringCommSplit(ringComm_t comm, int color, int key, ringComm_t* newComm, const ringConfig_t* config) {
    return entry("ringCommSplit", [&] { return split(comm, color, key, newComm, config); });
}

ringResult_t ringCommShrink(ringComm_t comm, const int* excludedRanks, int excludedCount, ringComm_t* newComm,
                            const ringConfig_t* config) {
    return entry("ringCommShrink", [&] { return shrink(comm, excludedRanks, excludedCount, newComm, config); });
}

ringResult_t ringCommCount(ringComm_t comm, int* count) {
    return ask("ringCommCount", comm, count, [](Communicator& c) { return c.size(); });
}

ringResult_t ringCommUserRank(ringComm_t comm, int* rank) {
    return ask("ringCommUserRank", comm, rank, [](Communicator& c) { return c.rank(); });
}

ringResult_t ringCommDevice(ringComm_t comm, int* device) {
    return ask("ringCommDevice", comm, device, [](Communicator& c) { return c.settings().cuda_device; });
}

ringResult_t ringCommGetStats(ringComm_t comm, ringCommStats_t* stats) {
    return entry("ringCommGetStats", [&]() -> Status {
        if (stats == nullptr || stats->size == 0)
            return failure(ringInvalidArgument, "ringCommGetStats: {}",
                           stats == nullptr ? "stats is NULL" : "stats->size is 0; set it to sizeof");
        RINGCCL_ASSIGN(CommPin pin, find_communicator(comm, "ringCommGetStats"));
        const ringCommStats_t all = pin->stats();
        const size_t known = std::min(stats->size, sizeof all);
        const size_t asked = stats->size;
        std::memcpy(stats, &all, known);
        stats->size = asked;
        return {};
    });
}

ringResult_t ringCommGetFailed(ringComm_t comm, int* ranks, int capacity, int* count) {
    return entry("ringCommGetFailed", [&]() -> Status {
        if (count == nullptr) return failure(ringInvalidArgument, "ringCommGetFailed: count is NULL");
        if (capacity < 0 || (capacity > 0 && ranks == nullptr))
            return failure(ringInvalidArgument, "ringCommGetFailed: room for {} ranks at {}", capacity,
                           static_cast<void*>(ranks));
        RINGCCL_ASSIGN(CommPin pin, find_communicator(comm, "ringCommGetFailed"));
        const std::vector<int> lost = pin->lost();
        *count = static_cast<int>(lost.size());
        std::copy_n(lost.begin(), std::min<size_t>(lost.size(), static_cast<size_t>(capacity)), ranks);
        return {};
    });
}

ringResult_t ringCommDump(ringComm_t comm, const char* path) {
    return entry("ringCommDump", [&]() -> Status {
        if (path == nullptr) return failure(ringInvalidArgument, "ringCommDump: path is NULL");
        RINGCCL_ASSIGN(CommPin pin, find_made(comm, "ringCommDump"));
        return pin->write_record(path);
    });
}
