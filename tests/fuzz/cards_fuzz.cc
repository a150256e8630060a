// A whole communicator in the making, with the input as everything that the other rank says once it has joined: its card, and
// its vote on transports. Rank 0 is real; rank 1 is the fuzzer.
#include <stdlib.h>

#include <thread>

#include "bootstrap/bootstrap.h"
#include "fuzz/fuzz.h"
#include "ringccl/ringccl.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace ringccl;
    // One host, so that p2p tries to use what the card says; and a quiet log, for most cards are worth a line.
    static const bool prepared = ::setenv("RINGCCL_HOST_ID", "h", 1) == 0 && ::setenv("RINGCCL_LOG", "off", 1) == 0;
    fuzz::must(prepared, "the environment is set");
    static const Settings settings = settings_from_environment().value();
    static const std::atomic<bool> never{false};
    fuzz::Bytes bytes(data, size);
    const uint8_t form = bytes.byte();
    const size_t card_bytes = bytes.byte() * size_t{256} + bytes.byte();
    const std::string card(bytes.take(card_bytes));
    std::string vote(bytes.rest());
    const bool tcp = form & 2;
    // An agreed vote on TCP would have rank 0 dial what addresses the input names, on whatever network the fuzzer runs.
    if (tcp) std::replace(vote.begin(), vote.end(), '1', '0');
    const int fuzzer = form & 1;  // which rank it is: rank 0's card also has the settings of all

    ringUniqueId id;
    fuzz::must(ringGetUniqueId(&id) == ringSuccess, "there is an id");
    std::thread other([&] {
        auto joined = Bootstrap::join(id, fuzzer, 2, card, settings, Deadline::after(std::chrono::seconds(5)), never);
        if (joined.ok()) joined.value()->exchange(vote, Deadline::after(std::chrono::seconds(5)), never).ok();
        // It leaves without "ready", so the communicator never comes to be.
    });
    ringConfig_t config = RINGCCL_CONFIG_INITIALIZER;
    config.initTimeoutMs = 5000;
    config.transport = tcp ? "tcp" : "p2p";
    ringComm_t comm = nullptr;
    ringResult_t made = ringCommInitRankConfig(&comm, 2, id, 1 - fuzzer, &config);
    other.join();
    fuzz::must(made != ringSuccess && comm == nullptr, "half a communicator is none");
    fuzz::must(*ringGetLastError(nullptr) != 0, "a failure says what it is");
    return 0;
}
