// The last operations of one rank of one communicator, and how far its links to each peer have come: what is dumped when
// something failed or when asked for, and what the hub is told. Written by the thread that runs the engine, readable from any
// thread at any time; writing is a handful of plain stores.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/operation.h"
#include "base/status.h"
#include "trace/print_history.h"
#include "trace/ticks.h"

namespace ringccl {

class FlightRecorder {
public:
    static constexpr size_t kRemembered = 256;

    // Slices since the communicator was made; the sender's and the receiver's counts of one pair are comparable.
    struct Progress {
        std::atomic<uint64_t> offered{0};   // to the peer
        std::atomic<uint64_t> received{0};  // from the peer
        // One writer, so no locked instruction.
        static void count(std::atomic<uint64_t>& counter) {
            counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        }
    };

    // Who writes and what about: told once, before the first operation.
    struct Header {
        std::string communicator;  // the same on all ranks, different for each communicator
        int rank = 0, size = 1;
        std::vector<std::string> names;      // of the ranks: "rank 3 (process 4711 on node7)"
        std::vector<std::string> transport;  // by rank, how it is reached; "" for this one
    };
    explicit FlightRecorder(Header header);

    // ---- by the thread that runs the engine ----
    // Returns the record's number. `algorithm` is a static string, or null until runs() says more.
    uint64_t begin(const Operation& operation, const char* algorithm = nullptr);
    void runs(uint64_t record, const char* algorithm);
    // The operation is about to sleep until this rank moves; -1: for nobody in particular. Of several ranks the first is as
    // good as any, for whoever reads follows the chain from there. Stays until said otherwise.
    void waits_for(uint64_t record, int rank);
    void end(uint64_t record, ringResult_t result);
    // Ends all that have not ended.
    void abandon(ringResult_t result);
    Progress& progress(int peer) { return progress_[static_cast<size_t>(peer)]; }

    // ---- from any thread ----
    uint64_t begun() const;      // collectives begun: the sequence number of the next one
    uint64_t completed() const;  // operations that ended well, of whatever kind
    // The collective of that number, if begun and still remembered.
    std::optional<Fingerprint> print_of(uint64_t sequence) const { return prints_.find(sequence, begun_); }
    // "allReduce (operation 17), waiting for rank 3"; of several the oldest; "" if none is running.
    std::string doing() const;
    // Everything, see docs/debugging.md. `failure` is why the communicator cannot go on, or ok.
    nlohmann::json dump(const Status& failure) const;

private:
    // One operation: a cache line. `stamp` is 2n + 1 while record n is being written and 2n + 2 from then on, so a reader that
    // finds the same even stamp before and after has read one record. Instead of fences, which ThreadSanitizer does not follow,
    // every store of begin() releases and every load of a reader acquires: a value of the next record brings its odd stamp with
    // it.
    struct alignas(64) Record {
        std::atomic<uint64_t> stamp{0};
        std::atomic<uint64_t> sequence{0}, count{0};
        std::atomic<uint64_t> what{0};  // kind, type, op, and root or peer, packed
        std::atomic<const char*> algorithm{nullptr};
        std::atomic<Ticks> begin{0}, end{0};  // end: 0 while it runs
        std::atomic<int32_t> waits_for{-1};
        std::atomic<int32_t> result{ringSuccess};
    };
    // What a reader makes of it.
    struct Entry {
        Fingerprint print;
        Kind called = Kind::barrier;
        int peer = -1;
        const char* algorithm = nullptr;
        Ticks begin = 0, end = 0;
        int waits_for = -1;
        ringResult_t result = ringSuccess;

        bool pair() const { return called == Kind::send || called == Kind::recv; }
    };

    Record& slot(uint64_t record) const { return records_[record % kRemembered]; }
    Record* still(uint64_t record) const;
    std::optional<Entry> read(uint64_t record) const;
    std::vector<Entry> entries() const;  // oldest first

    const Header header_;
    const std::string host_;
    const int process_;
    std::unique_ptr<Record[]> records_;
    std::unique_ptr<Progress[]> progress_;
    PrintHistory prints_;
    std::atomic<uint64_t> next_{0};
    std::atomic<uint64_t> begun_{0}, completed_{0};
};

}  // namespace ringccl
