#include "api/group.h"

#include <algorithm>
#include <thread>

#include "api/entry.h"

namespace ringccl {

Group& Group::of_thread() {
    static thread_local Group group;
    return group;
}

Status Group::end() {
    if (depth_ == 0) return failure(ringInvalidUsage, "ringGroupEnd without ringGroupStart in this thread");
    if (--depth_ > 0) return {};
    auto calls = std::exchange(calls_, {});
    auto makings = std::exchange(makings_, {});
    if (Status error = std::exchange(error_, {}); !error.ok()) return error;
    RINGCCL_TRY(make_all(makings));
    return call_all(calls);
}

Status Group::submit(const std::shared_ptr<Communicator>& comm, const Operation& operation, std::shared_ptr<Order> stream) {
    if (open()) {
        calls_.push_back({comm, operation, std::move(stream)});
        return {};
    }
    if (stream == nullptr) return comm->run({&operation, 1});
    return comm->enqueue({&operation, 1}, {std::move(stream)});
}

Status Group::submit(ringComm_t* comm, const ringUniqueId& id, int rank, int size, const Settings& settings) {
    if (open()) {
        makings_.push_back({comm, id, rank, size, settings});
        return {};
    }
    return make_communicator(id, rank, size, settings, comm);
}

// Making blocks until all ranks are there, so ranks that are made by one thread need a thread each for as long.
Status Group::make_all(std::vector<Making>& makings) {
    std::vector<Status> results(makings.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < makings.size(); ++i) {
        threads.emplace_back([&making = makings[i], &result = results[i]] {
            try {
                result = make_communicator(making.id, making.rank, making.size, making.settings, making.comm);
            } catch (const std::exception& problem) {
                result = failure(ringInternalError, "making rank {}: {}", making.rank, problem.what());
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    // The cause before its echo: a rank that failed by itself says more than those that heard of it.
    for (const Status& result : results)
        if (!result.ok() && result.code() != ringRemoteError) return result;
    for (const Status& result : results) RINGCCL_TRY(result);
    return {};
}

Status Group::call_all(std::vector<Call>& calls) {
    // Per communicator, in the order of the calls.
    struct Share {
        std::shared_ptr<Communicator> comm;
        std::vector<Operation> operations;
        std::vector<std::shared_ptr<Order>> streams;  // each once
        bool waits = false;
    };
    std::vector<Share> shares;
    for (Call& call : calls) {
        auto share = std::find_if(shares.begin(), shares.end(), [&](const Share& s) { return s.comm == call.comm; });
        if (share == shares.end()) share = shares.insert(shares.end(), Share{call.comm, {}, {}});
        share->operations.push_back(call.operation);
        if (call.stream == nullptr) {
            share->waits = true;
        } else if (std::find(share->streams.begin(), share->streams.end(), call.stream) == share->streams.end()) {
            share->streams.push_back(call.stream);
        }
    }
    if (shares.size() == 1 && shares[0].streams.empty()) return shares[0].comm->run(shares[0].operations);

    // Several communicators of one thread must all progress: each on its own worker, while the caller waits for those that it
    // called without a stream.
    Status first;
    std::vector<std::shared_ptr<Stream>> awaited;
    for (Share& share : shares) {
        if (share.waits) share.streams.push_back(awaited.emplace_back(std::make_shared<Stream>()));
        Status queued = share.comm->enqueue(share.operations, share.streams);
        if (first.ok()) first = queued;
    }
    for (const auto& stream : awaited) {
        Status done = stream->synchronize();
        if (first.ok()) first = done;
    }
    return first;
}

}  // namespace ringccl

using namespace ringccl;

ringResult_t ringGroupStart(void) {
    return entry("ringGroupStart", []() -> Status {
        Group::of_thread().start();
        return {};
    });
}

ringResult_t ringGroupEnd(void) {
    return entry("ringGroupEnd", [] { return Group::of_thread().end(); });
}
