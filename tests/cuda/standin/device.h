// The devices of this process, and what belongs to each: its streams, and the rules by which they wait for each other.
#pragma once

#include <list>
#include <mutex>

#include "stream.h"

namespace standin {

class Device {
public:
    Device(int number, int physical);

    int number() const { return number_; }      // as this process counts them
    int physical() const { return physical_; }  // as all processes do

    SharedStream open_stream(unsigned flags, int priority);
    void close_stream(const SharedStream& stream);
    const SharedStream& legacy_stream() const { return legacy_; }
    SharedStream per_thread_stream();

    // Enqueues work, behind all that the stream must wait for: the legacy stream is ordered with all blocking ones.
    Work::Shared submit(Stream& stream, std::function<void()> body, std::vector<Work::Shared> after = {});
    // All that was enqueued before on any of the device's streams.
    void synchronize();

private:
    const int number_, physical_;
    std::mutex mutex_;
    SharedStream legacy_;
    std::list<SharedStream> streams_;  // all others; a closed one until it is idle
    std::list<SharedStream> closed_;

    void forget_idle();
};

int device_count();
Device* find_device(int number);  // null if there is none
Device& current_device();
void set_current_device(int number);

// By physical number.
bool can_access_peer(int device, int peer);
bool peer_access_enabled(int device, int peer);
// False if it was so already.
bool set_peer_access(int device, int peer, bool enabled);

}  // namespace standin
