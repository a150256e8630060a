#include "faults/work.h"

namespace ringccl::faults {
namespace {

constexpr size_t kSmall = 256, kLarge = 1 << 20;  // 1 KiB and 4 MiB of floats
constexpr size_t kMessage = 1 << 14;

}  // namespace

Worker::Worker(ringComm_t comm, int rank, int size, Work work)
    : comm_(comm),
      rank_(rank),
      size_(size),
      work_(work),
      send_(kLarge + 1, 1.0f),
      recv_(kLarge + 1),
      gift_(kMessage, 1.0f),
      taken_(kMessage) {
    if (work == Work::stream) ringStreamCreate(&stream_);
}

Worker::~Worker() {
    if (stream_) ringStreamDestroy(stream_);
}

size_t Worker::count(int index) const {
    return index % 2 ? kLarge : kSmall;
}

ringResult_t Worker::all_reduce(size_t count, void* stream) {
    return ringAllReduce(send_.data(), recv_.data(), count, ringFloat32, ringSum, comm_, stream);
}

void Worker::check(size_t count) {
    wrong_ |= recv_[0] != float(size_) || recv_[count - 1] != float(size_);
}

ringResult_t Worker::once(int index) {
    if (work_ == Work::pairs) return pairs();
    const size_t last = work_ == Work::mix ? count(index) : kLarge;
    recv_[0] = recv_[last - 1] = 0;
    ringResult_t result;
    switch (work_) {
        case Work::group:
            result = group();
            break;
        case Work::stream:
            result = streamed();
            break;
        default:
            result = all_reduce(last, nullptr);
    }
    if (result == ringSuccess) check(last);
    return result;
}

ringResult_t Worker::pairs() {
    const int peer = rank_ ^ 1;
    auto send = [&] { return ringSend(gift_.data(), kMessage, ringFloat32, peer, comm_, nullptr); };
    auto receive = [&] { return ringRecv(taken_.data(), kMessage, ringFloat32, peer, comm_, nullptr); };
    ringResult_t result = rank_ % 2 ? receive() : send();
    if (result != ringSuccess) return result;
    return rank_ % 2 ? send() : receive();
}

ringResult_t Worker::group() {
    ringGroupStart();
    all_reduce(kLarge, nullptr);
    ringSend(gift_.data(), kMessage, ringFloat32, (rank_ + 1) % size_, comm_, nullptr);
    ringRecv(taken_.data(), kMessage, ringFloat32, (rank_ + size_ - 1) % size_, comm_, nullptr);
    return ringGroupEnd();  // it repeats what one of the three had to say
}

ringResult_t Worker::streamed() {
    for (int i = 0; i < 4; ++i)
        if (ringResult_t result = all_reduce(kLarge, stream_); result != ringSuccess) return result;
    return ringStreamSynchronize(stream_);
}

ringResult_t Worker::deviate(int index, Deed how) {
    const size_t right = count(index);
    switch (how) {
        case Deed::other_count:
            return all_reduce(right + 1, nullptr);
        case Deed::other_type:
            return ringAllReduce(send_.data(), recv_.data(), right, ringInt32, ringSum, comm_, nullptr);
        case Deed::other_collective:
            return ringBroadcast(send_.data(), recv_.data(), right, ringFloat32, 0, comm_, nullptr);
        default:
            return once(index);
    }
}

}  // namespace ringccl::faults
