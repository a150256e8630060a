// What one rank wrote down about its communicator (ringCommDump, RINGCCL_RECORD), read back.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace ringccl::doctor {

struct RecordedOperation {
    uint64_t sequence = 0, count = 0;
    std::string kind, type, op, algorithm, result;  // no result while it ran
    int root = -1, peer = -1;                       // -1 where the kind has none
    int waits_for = -1;
    int64_t begin_us = 0;
    std::optional<int64_t> end_us;

    bool pair() const { return peer >= 0; }
    bool finished() const { return end_us && result == "ringSuccess"; }
    std::string name() const;         // "allReduce (operation 17)", "recv (message 3) from rank 2"
    std::string description() const;  // "allReduce of 1000 float32 (sum)"
};

struct RankDump {
    struct Failure {
        int code = 0;
        std::string name, text;
    };
    struct Peer {
        std::string transport;
        uint64_t offered = 0, received = 0;
    };

    std::string file, communicator, host;
    int rank = 0, size = 1;
    int64_t process = 0, time_us = 0;
    std::optional<Failure> failure;
    uint64_t begun = 0, completed = 0;
    std::vector<RecordedOperation> operations;  // oldest first
    std::map<int, Peer> peers;

    // The oldest operation that has not ended well; null between operations.
    const RecordedOperation* current() const;
    const RecordedOperation* last_finished() const;
    const RecordedOperation* collective(uint64_t sequence) const;
};

// ringInvalidArgument: no dump, or of a format that is not known; the text names the file and what is wrong with it.
Result<RankDump> read_dump(const std::string& file, const nlohmann::json& content);

}  // namespace ringccl::doctor
