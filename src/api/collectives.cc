// The collectives and point-to-point calls: check, then submit.
#include "api/arguments.h"
#include "api/entry.h"
#include "api/group.h"

using namespace ringccl;

namespace {

// The order that a caller's stream stands for; null: the caller waits.
Result<std::shared_ptr<Order>> order_of(const Call& call, Communicator& comm, void* stream) {
    RINGCCL_ASSIGN(auto order, comm.device().order(stream));
    if (order != nullptr || stream == nullptr) return order;
    auto pin = streams().find(reinterpret_cast<uint64_t>(stream));
    if (!pin) return failure(ringInvalidArgument, "{}: {} is not a stream from ringStreamCreate", call.name, stream);
    return std::shared_ptr<Order>(pin.shared());
}

Status submit(const Call& call, ringComm_t handle, void* stream) {
    RINGCCL_ASSIGN(CommPin comm, find_working(handle, call.name));
    RINGCCL_ASSIGN(std::shared_ptr<Order> order, order_of(call, *comm, stream));
    RINGCCL_ASSIGN(const Operation operation, check(call, *comm));
    return Group::of_thread().submit(comm.shared(), operation, std::move(order));
}

ringResult_t call(const Call& call, ringComm_t handle, void* stream) {
    return entry(call.name, [&] {
        Status status = submit(call, handle, stream);
        if (!status.ok()) Group::of_thread().spoil(status);
        return status;
    });
}

}  // namespace

ringResult_t ringAllReduce(const void* send, void* recv, size_t count, ringDataType_t type, ringRedOp_t op, ringComm_t comm,
                           void* stream) {
    return call({"ringAllReduce", Kind::all_reduce, send, recv, count, type, op}, comm, stream);
}

ringResult_t ringScatterReduce(const void* send, void* recv, size_t recvCount, ringDataType_t type, ringRedOp_t op,
                               ringComm_t comm, void* stream) {
    return call({"ringScatterReduce", Kind::scatter_reduce, send, recv, recvCount, type, op}, comm, stream);
}

ringResult_t ringAllGather(const void* send, void* recv, size_t sendCount, ringDataType_t type, ringComm_t comm, void* stream) {
    return call({"ringAllGather", Kind::all_gather, send, recv, sendCount, type}, comm, stream);
}

ringResult_t ringBroadcast(const void* send, void* recv, size_t count, ringDataType_t type, int root, ringComm_t comm,
                           void* stream) {
    return call({"ringBroadcast", Kind::broadcast, send, recv, count, type, -1, root}, comm, stream);
}

ringResult_t ringReduce(const void* send, void* recv, size_t count, ringDataType_t type, ringRedOp_t op, int root,
                        ringComm_t comm, void* stream) {
    return call({"ringReduce", Kind::reduce, send, recv, count, type, op, root}, comm, stream);
}

ringResult_t ringGather(const void* send, void* recv, size_t count, ringDataType_t type, int root, ringComm_t comm,
                        void* stream) {
    return call({"ringGather", Kind::gather, send, recv, count, type, -1, root}, comm, stream);
}

ringResult_t ringScatter(const void* send, void* recv, size_t count, ringDataType_t type, int root, ringComm_t comm,
                         void* stream) {
    return call({"ringScatter", Kind::scatter, send, recv, count, type, -1, root}, comm, stream);
}

ringResult_t ringAllToAll(const void* send, void* recv, size_t count, ringDataType_t type, ringComm_t comm, void* stream) {
    return call({"ringAllToAll", Kind::all_to_all, send, recv, count, type}, comm, stream);
}

ringResult_t ringBarrier(ringComm_t comm, void* stream) {
    return call({"ringBarrier", Kind::barrier}, comm, stream);
}

ringResult_t ringSend(const void* send, size_t count, ringDataType_t type, int peer, ringComm_t comm, void* stream) {
    return call({"ringSend", Kind::send, send, nullptr, count, type, -1, 0, peer}, comm, stream);
}

ringResult_t ringRecv(void* recv, size_t count, ringDataType_t type, int peer, ringComm_t comm, void* stream) {
    return call({"ringRecv", Kind::recv, nullptr, recv, count, type, -1, 0, peer}, comm, stream);
}

ringResult_t scatterReduce(const void* send, void* recv, size_t recvCount, ringDataType_t type, ringRedOp_t op, ringComm_t comm,
                           void* stream) {
    return ringScatterReduce(send, recv, recvCount, type, op, comm, stream);
}

ringResult_t allGather(const void* send, void* recv, size_t sendCount, ringDataType_t type, ringComm_t comm, void* stream) {
    return ringAllGather(send, recv, sendCount, type, comm, stream);
}
