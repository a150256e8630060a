// Where the buffers of a communicator lie and where its arithmetic runs: the host, or a CUDA device (device/cuda).
//
// Work is begun on a lane and ends there in the order in which it was begun; lanes run side by side. The host does it within
// the call. Elsewhere it is under way when the call returns, and what it reads and writes must stay until its ticket is done.
// No work ever waits for another rank, so all that was begun ends by itself. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "device/order.h"
#include "device/peer_memory.h"
#include "kernels/cpu/kernels.h"

namespace ringccl {

// One arithmetic, resolved once.
struct Kernel {
    ringDataType_t type = ringInt8;
    Op op = Op::none;
    ReduceKernel host = nullptr;

    Kernel() = default;
    Kernel(ringDataType_t t, Op o) : type(t), op(o), host(reduce_kernel(t, o)) {}
    explicit operator bool() const { return host != nullptr; }
};

class Device {
public:
    // Of all that was begun on a lane until then; 0: it is done already.
    using Ticket = uint64_t;

    static constexpr size_t kAlign = 128;  // bytes, of memory for slices: two cache lines, what the prefetcher pairs

    virtual ~Device() = default;

    // How many slices of a channel may be under way at once. 1: work is done when it has been begun.
    virtual size_t depth() const = 0;
    // Null where CPUs, and so sockets, reach the callers' buffers.
    virtual PeerMemory* peer_memory() = 0;

    // Once, before the first order(): names the communicator, alike for all its ranks and for nobody else's.
    virtual void join(uint64_t communicator) = 0;
    // Whether a caller's "send" or "receive" buffer can be used; ringInvalidArgument says why not.
    virtual Status check_buffer(const char* caller, const char* what, const void* at) = 0;
    // The order that a stream of the device's own kind stands for, the same object for the same stream; null on the host.
    virtual Result<std::shared_ptr<Order>> order(void* stream) = 0;

    // dst[i] = op over k of src[k][i], as kernels/cpu/kernels.h says. Results that go `past_caches` are not read soon.
    virtual void reduce(int lane, const Kernel& kernel, void* dst, const void* const* src, int k, size_t count,
                        const Scale& scale, bool past_caches) = 0;
    virtual void copy(int lane, void* dst, const void* src, size_t bytes, bool past_caches) = 0;
    virtual Ticket mark(int lane) = 0;
    virtual bool done(int lane, Ticket ticket) = 0;
    // Whether tickets are out that are not done: nobody rings a doorbell when they are.
    virtual bool busy() const = 0;

    // Memory for what arrives and for values in between, at least `bytes` of it, at kAlign. It stays where it is
    // until a larger one is asked for on the same lane while nothing runs there. `landing`: CPUs reach it too.
    virtual std::byte* scratch(int lane, size_t bytes, bool landing) = 0;

    // Why nothing more will be done, if so: tickets that are out stay so.
    virtual const Status& status() const = 0;
    // Waits until all that was begun has ended, well or not.
    virtual void drain() = 0;
};

}  // namespace ringccl
