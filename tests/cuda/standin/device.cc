#include "device.h"

#include <driver_types.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "edges.h"
#include "settings.h"

namespace standin {
namespace {

thread_local int current = 0;

bool idle(const Stream& stream) {
    Work::Shared last = stream.last();
    return !last || last->finished_unannounced();
}

// The calling thread's own stream on each device; they end with the thread.
struct PerThreadStreams {
    std::map<Device*, SharedStream> streams;
    ~PerThreadStreams() {
        Hidden hidden;
        for (auto& [device, stream] : streams) device->close_stream(stream);
    }
};
thread_local PerThreadStreams per_thread;

std::vector<Device*>& devices() {
    static std::vector<Device*>& instance = *[] {
        auto* devices = new std::vector<Device*>;  // never destroyed: workers outlive main
        for (int physical : settings().devices) devices->push_back(new Device(static_cast<int>(devices->size()), physical));
        return devices;
    }();
    return instance;
}

struct Peers {
    std::mutex mutex;
    std::set<std::pair<int, int>> enabled;
};

Peers& peers() {
    static Peers& instance = *new Peers;
    return instance;
}

}  // namespace

Device::Device(int number, int physical)
    : number_(number), physical_(physical), legacy_(std::make_shared<Stream>(*this, cudaStreamDefault, 0)) {}

SharedStream Device::open_stream(unsigned flags, int priority) {
    auto stream = std::make_shared<Stream>(*this, flags, priority);
    std::scoped_lock lock(mutex_);
    streams_.push_back(stream);
    return stream;
}

void Device::close_stream(const SharedStream& stream) {
    stream->close();
    std::scoped_lock lock(mutex_);
    closed_.push_back(stream);
    forget_idle();
}

void Device::forget_idle() {
    for (auto stream = closed_.begin(); stream != closed_.end();) {
        if (idle(**stream)) {
            streams_.remove(*stream);
            stream = closed_.erase(stream);
        } else {
            ++stream;
        }
    }
}

SharedStream Device::per_thread_stream() {
    SharedStream& stream = per_thread.streams[this];
    if (!stream) stream = open_stream(cudaStreamDefault, 0);
    return stream;
}

Work::Shared Device::submit(Stream& stream, std::function<void()> body, std::vector<Work::Shared> after) {
    stream.await_room();
    std::scoped_lock lock(mutex_);
    forget_idle();
    auto wait_for = [&](const Stream& other) {
        if (Work::Shared last = other.last()) after.push_back(std::move(last));
    };
    if (&stream == legacy_.get()) {
        for (const SharedStream& other : streams_)
            if (other->blocking()) wait_for(*other);
    } else if (stream.blocking()) {
        wait_for(*legacy_);
    }
    auto work = std::make_shared<Work>(std::move(body), std::move(after));
    stream.push(work);
    return work;
}

void Device::synchronize() {
    std::vector<Work::Shared> pending;
    {
        std::scoped_lock lock(mutex_);
        if (Work::Shared last = legacy_->last()) pending.push_back(last);
        for (const SharedStream& stream : streams_)
            if (Work::Shared last = stream->last()) pending.push_back(last);
    }
    for (const Work::Shared& work : pending) work->wait();
}

int device_count() {
    return static_cast<int>(devices().size());
}

Device* find_device(int number) {
    return number >= 0 && number < device_count() ? devices()[static_cast<size_t>(number)] : nullptr;
}

Device& current_device() {
    return *devices()[static_cast<size_t>(current)];
}

void set_current_device(int number) {
    current = number;
}

bool can_access_peer(int device, int peer) {
    return device != peer && settings().peer_access;
}

bool peer_access_enabled(int device, int peer) {
    std::scoped_lock lock(peers().mutex);
    return peers().enabled.contains({device, peer});
}

bool set_peer_access(int device, int peer, bool enabled) {
    std::scoped_lock lock(peers().mutex);
    return enabled ? peers().enabled.insert({device, peer}).second : peers().enabled.erase({device, peer}) > 0;
}

}  // namespace standin
