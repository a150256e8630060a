// ringccl for C++17 and later: objects that own what ringccl.h hands out, exceptions for its result codes, element types
// deduced. Header only; it adds nothing to the semantics, so the rules for buffers, streams, threads and errors are those of
// ringccl.h, call by call. The namespace is `ring`, after the C prefix: `ringccl` is the library's inside.
//
//     ring::Communicator comm = ring::Communicator::fromEnvironment();
//     std::vector<float> gradient = ...;
//     comm.allReduce(gradient, gradient, ringAvg);
//
// Buffers are anything that std::data and std::size understand: vector, array, span, ring::Memory. Their sizes are checked
// against each other; where ringccl.h allows a NULL buffer, an empty one may be given.
// Every function throws ring::Error unless it is noexcept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ringccl/ringccl.h"

namespace ring {

// A result other than ringSuccess, with the sentence of ringGetLastError.
class Error : public std::runtime_error {
public:
    Error(ringResult_t code, const std::string& text) : std::runtime_error(text), code_(code) {}
    ringResult_t code() const noexcept { return code_; }

private:
    ringResult_t code_;
};

// Throws if the call of ringccl.h that gave this result failed. To be used in the thread that made the call.
inline void check(ringResult_t result) {
    if (result != ringSuccess) throw Error(result, ringGetLastError(nullptr));
}

// 16-bit floats as plain bits; ringccl computes with them, C++17 cannot.
struct Float16 {
    std::uint16_t bits;
};
struct Bfloat16 {
    std::uint16_t bits;
};

// The ringDataType_t of T. Specialise it for types of your own that have one of these representations.
template <class T, class = void>
struct DataType;
template <class T>
struct DataType<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) != 2>> {
    static constexpr ringDataType_t value = sizeof(T) == 1   ? (std::is_signed_v<T> ? ringInt8 : ringUint8)
                                            : sizeof(T) == 4 ? (std::is_signed_v<T> ? ringInt32 : ringUint32)
                                                             : (std::is_signed_v<T> ? ringInt64 : ringUint64);
};
template <>
struct DataType<float> {
    static constexpr ringDataType_t value = ringFloat32;
};
template <>
struct DataType<double> {
    static constexpr ringDataType_t value = ringFloat64;
};
template <>
struct DataType<Float16> {
    static constexpr ringDataType_t value = ringFloat16;
};
template <>
struct DataType<Bfloat16> {
    static constexpr ringDataType_t value = ringBfloat16;
};

// Memory from ringMemAlloc: `size` zeroed elements that ranks of the same host read without a copy.
template <class T>
class Memory {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    using value_type = T;

    explicit Memory(std::size_t size) : size_(size) {
        void* at = nullptr;
        if (size > 0) check(ringMemAlloc(&at, size * sizeof(T)));
        data_ = static_cast<T*>(at);
    }
    Memory(Memory&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Memory& operator=(Memory&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Memory() {
        if (data_) ringMemFree(data_);
    }

    T* data() noexcept { return data_; }
    const T* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    T& operator[](std::size_t index) noexcept { return data_[index]; }
    const T& operator[](std::size_t index) const noexcept { return data_[index]; }
    T* begin() noexcept { return data_; }
    T* end() noexcept { return data_ + size_; }

private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

// A queue of asynchronous host work. Hand stream.get() to the calls that should go into it; the destructor waits for them.
class Stream {
public:
    Stream() { check(ringStreamCreate(&stream_)); }
    Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
    Stream& operator=(Stream&& other) noexcept {
        std::swap(stream_, other.stream_);
        return *this;
    }
    ~Stream() {
        if (stream_) ringStreamDestroy(stream_);
    }

    ringStream_t get() const noexcept { return stream_; }
    void synchronize() { check(ringStreamSynchronize(stream_)); }
    // Whether all work is done.
    bool idle() {
        ringResult_t result = ringStreamQuery(stream_);
        if (result == ringInProgress) return false;
        check(result);
        return true;
    }

private:
    ringStream_t stream_ = nullptr;
};

// The calls of this thread between construction and end() make progress together. Call end(): it reports their errors. The
// destructor only closes a group that an exception left open.
class Group {
public:
    Group() { check(ringGroupStart()); }
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;
    ~Group() {
        if (open_) ringGroupEnd();
    }

    void end() {
        open_ = false;
        check(ringGroupEnd());
    }

private:
    bool open_ = true;
};

// A communicator, destroyed with the object. Move-only.
class Communicator {
public:
    Communicator() noexcept = default;  // none
    explicit Communicator(ringComm_t owned) noexcept : comm_(owned) {}
    Communicator(Communicator&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)) {}
    Communicator& operator=(Communicator&& other) noexcept {
        std::swap(comm_, other.comm_);
        return *this;
    }
    ~Communicator() {
        if (comm_) ringCommDestroy(comm_);
    }

    static ringUniqueId uniqueId() {
        ringUniqueId id;
        check(ringGetUniqueId(&id));
        return id;
    }
    static Communicator join(const ringUniqueId& id, int worldSize, int rank, const ringConfig_t* config = nullptr) {
        return make([&](ringComm_t* comm) { return ringCommInitRankConfig(comm, worldSize, id, rank, config); });
    }
    static Communicator fromEnvironment(const ringConfig_t* config = nullptr) {
        return make([&](ringComm_t* comm) { return ringCommInitEnv(comm, config); });
    }
    // All ranks of a world inside this process, in rank order.
    static std::vector<Communicator> all(int worldSize, const ringConfig_t* config = nullptr) {
        std::vector<ringComm_t> comms(worldSize > 0 ? worldSize : 0);
        check(ringCommInitAll(comms.data(), worldSize, config));
        return std::vector<Communicator>(comms.begin(), comms.end());
    }

    ringComm_t get() const noexcept { return comm_; }
    explicit operator bool() const noexcept { return comm_ != nullptr; }
    int size() const { return ask(ringCommCount); }
    int rank() const { return ask(ringCommUserRank); }
    ringCommStats_t stats() const {
        ringCommStats_t stats = {};
        stats.size = sizeof(stats);
        check(ringCommGetStats(comm_, &stats));
        return stats;
    }

    // An empty Communicator for color RINGCCL_SPLIT_NOCOLOR.
    Communicator split(int color, int key, const ringConfig_t* config = nullptr) const {
        return make([&](ringComm_t* comm) { return ringCommSplit(comm_, color, key, comm, config); });
    }
    Communicator shrink(const std::vector<int>& excluded, const ringConfig_t* config = nullptr) const {
        return make([&](ringComm_t* comm) {
            return ringCommShrink(comm_, excluded.data(), static_cast<int>(excluded.size()), comm, config);
        });
    }
    // The ranks that are known to be lost.
    std::vector<int> failed() const {
        int count = 0;
        check(ringCommGetFailed(comm_, nullptr, 0, &count));
        std::vector<int> ranks(static_cast<std::size_t>(count));
        check(ringCommGetFailed(comm_, ranks.data(), count, &count));
        if (static_cast<std::size_t>(count) < ranks.size()) ranks.resize(static_cast<std::size_t>(count));
        return ranks;
    }
    void dump(const char* path) const { check(ringCommDump(comm_, path)); }
    // Waits for the work of all streams and reports its first error.
    void finalize() { check(ringCommFinalize(comm_)); }
    void abort() noexcept { ringCommAbort(comm_); }

    template <class Send, class Recv>
    void allReduce(const Send& send, Recv&& recv, ringRedOp_t op = ringSum, void* stream = nullptr) {
        fits(std::size(send) == std::size(recv), "allReduce: send and recv differ in size");
        check(ringAllReduce(std::data(send), std::data(recv), std::size(recv), type(send, recv), op, comm_, stream));
    }
    template <class Send, class Recv>
    void scatterReduce(const Send& send, Recv&& recv, ringRedOp_t op = ringSum, void* stream = nullptr) {
        fits(std::size(send) == std::size(recv) * size(), "scatterReduce: send must hold worldSize times what recv holds");
        check(ringScatterReduce(std::data(send), std::data(recv), std::size(recv), type(send, recv), op, comm_, stream));
    }
    template <class Send, class Recv>
    void allGather(const Send& send, Recv&& recv, void* stream = nullptr) {
        fits(std::size(recv) == std::size(send) * size(), "allGather: recv must hold worldSize times what send holds");
        check(ringAllGather(std::data(send), std::data(recv), std::size(send), type(send, recv), comm_, stream));
    }
    template <class Send, class Recv>
    void allToAll(const Send& send, Recv&& recv, void* stream = nullptr) {
        fits(std::size(send) == std::size(recv) && std::size(send) % size() == 0,
             "allToAll: send and recv must be of one size, a multiple of the world size");
        check(ringAllToAll(std::data(send), std::data(recv), std::size(send) / size(), type(send, recv), comm_, stream));
    }
    // In place: the root's data goes to all.
    template <class Data>
    void broadcast(Data&& data, int root, void* stream = nullptr) {
        check(ringBroadcast(std::data(data), std::data(data), std::size(data), type(data, data), root, comm_, stream));
    }
    // recv may be empty except on the root.
    template <class Send, class Recv>
    void reduce(const Send& send, Recv&& recv, int root, ringRedOp_t op = ringSum, void* stream = nullptr) {
        fits(rank() != root || std::size(send) == std::size(recv), "reduce: send and recv differ in size");
        check(ringReduce(std::data(send), std::data(recv), std::size(send), type(send, recv), op, root, comm_, stream));
    }
    // recv may be empty except on the root.
    template <class Send, class Recv>
    void gather(const Send& send, Recv&& recv, int root, void* stream = nullptr) {
        fits(rank() != root || std::size(recv) == std::size(send) * size(), "gather: recv must hold worldSize times send");
        check(ringGather(std::data(send), std::data(recv), std::size(send), type(send, recv), root, comm_, stream));
    }
    // send may be empty except on the root.
    template <class Send, class Recv>
    void scatter(const Send& send, Recv&& recv, int root, void* stream = nullptr) {
        fits(rank() != root || std::size(send) == std::size(recv) * size(), "scatter: send must hold worldSize times recv");
        check(ringScatter(std::data(send), std::data(recv), std::size(recv), type(send, recv), root, comm_, stream));
    }
    void barrier(void* stream = nullptr) { check(ringBarrier(comm_, stream)); }
    template <class Data>
    void send(const Data& data, int peer, void* stream = nullptr) {
        check(ringSend(std::data(data), std::size(data), type(data, data), peer, comm_, stream));
    }
    template <class Data>
    void recv(Data&& data, int peer, void* stream = nullptr) {
        check(ringRecv(std::data(data), std::size(data), type(data, data), peer, comm_, stream));
    }

private:
    template <class Maker>
    static Communicator make(Maker&& maker) {
        ringComm_t comm = nullptr;
        check(maker(&comm));
        return Communicator(comm);
    }
    int ask(ringResult_t (*question)(ringComm_t, int*)) const {
        int answer = 0;
        check(question(comm_, &answer));
        return answer;
    }
    static void fits(bool condition, const char* text) {
        if (!condition) throw Error(ringInvalidArgument, text);
    }
    template <class Buffer>
    using Element = std::remove_cv_t<std::remove_reference_t<decltype(*std::data(std::declval<Buffer&>()))>>;
    template <class Send, class Recv>
    static constexpr ringDataType_t type(const Send&, const Recv&) {
        static_assert(std::is_same_v<Element<const Send>, Element<const Recv>>, "send and recv hold different types");
        return DataType<Element<const Send>>::value;
    }

    ringComm_t comm_ = nullptr;
};

}  // namespace ring
