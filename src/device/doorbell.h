// How a rank sleeps and how others wake it. The word lives where peers can write to it; a peer rings only if the owner has said
// that it sleeps, so that in busy times nobody makes a system call.
//
// The owner:  announce(); look once more whether there is work; sleep(); awake().
// A peer:     publish the work; fence_before_ringing(); ring().
// Both do "write mine, fence, read yours", so at least one of them sees the other (Dekker). An owner that seldom sleeps may
// promise to fence the peers too (base/asymmetric_fence.h): then theirs costs nothing.
#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "base/status.h"

namespace ringccl {

struct DoorbellWord {
    enum : uint32_t { awake = 0, on_futex = 1, on_eventfd = 2 };
    alignas(64) std::atomic<uint32_t> state;  // written by the owner
    std::atomic<uint32_t> fences_peers;       // likewise, once
    alignas(64) std::atomic<uint32_t> rings;  // the futex: counts rings
    std::atomic<int32_t> eventfd;             // the owner's number; means something in its own process only
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

// Whether the fence between publishing the work and ring() must be a full one.
bool needs_fence(const DoorbellWord& word);
inline void fence_before_ringing(bool full) {
    if (full)
        std::atomic_thread_fence(std::memory_order_seq_cst);
    else
        std::atomic_signal_fence(std::memory_order_seq_cst);
}
// Wakes the owner of the word if it sleeps. `eventfd` is this process's descriptor of the owner's event, or -1.
void ring(DoorbellWord& word, int eventfd);

class Doorbell {
public:
    // Without a word in shared memory the bell has one of its own: then only threads of this process can ring it.
    Doorbell();
    // Moves to a word that peers see. Only before anybody uses the bell.
    void live_in(DoorbellWord* word);
    // Prepares for sleeping on sockets as well. Afterwards eventfd() can be handed to peers.
    Status open_eventfd();
    int eventfd() const { return event_.get(); }
    // For an owner that sleeps on sockets while peers in shared memory have not been given its event: sleeps are cut short.
    void look_often() { look_often_ = true; }
    // Promises to fence the peers before each sleep, which costs some microseconds there.
    void fence_peers();

    // From any thread: wakes the owner whether or not it is about to sleep.
    void ring_self();

    void announce(bool sockets);
    // Returns when rung, when one of the descriptors is ready, or after `limit`.
    void sleep(std::vector<pollfd>& descriptors, std::chrono::microseconds limit);
    void awake();

private:
    DoorbellWord own_{};
    DoorbellWord* word_ = &own_;
    Fd event_;
    uint32_t seen_ = 0;
    bool look_often_ = false;
    bool unfenced_ = false;  // the promise could not be kept this time: peers may not see that we sleep
};

}  // namespace ringccl
