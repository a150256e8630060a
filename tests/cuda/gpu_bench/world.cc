#include "world.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

namespace ringccl::gpu_bench {

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Member::Member(int rank, int ranks, const ringUniqueId& id, void* send, void* recv) : rank_(rank), send_(send), recv_(recv) {
    GPU_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ringConfig_t config = RINGCCL_CONFIG_INITIALIZER;
    config.deviceKind = ringDeviceCuda;
    config.deviceIndex = 0;
    GPU_CHECK(ringCommInitRankConfig(&comm_, ranks, id, rank, &config));
}

Member::~Member() {
    ringCommDestroy(comm_);
    cudaStreamDestroy(stream_);
}

void Member::all_reduce(size_t bytes) {
    GPU_CHECK(ringAllReduce(send_, recv_, bytes / sizeof(float), ringFloat32, ringSum, comm_, stream_));
}

void Member::finish() {
    GPU_CHECK(cudaStreamSynchronize(stream_));
    ringResult_t state = ringSuccess;
    GPU_CHECK(ringCommGetAsyncError(comm_, &state));
    if (state != ringSuccess && state != ringInProgress) throw std::runtime_error(ringGetLastError(comm_));
}

void Member::barrier() {
    GPU_CHECK(ringBarrier(comm_, stream_));
    finish();
}

double Member::seconds(size_t bytes, int calls) {
    barrier();
    const double begin = now();
    for (int i = 0; i < calls; ++i) all_reduce(bytes);
    finish();
    return (now() - begin) / calls;
}

void run_world(int ranks, size_t bytes, const std::function<void(Member&)>& body) {
    ringUniqueId id;
    GPU_CHECK(ringGetUniqueId(&id));
    // Made and freed while nothing runs: cudaFree waits for the whole device, where ranks may be waiting for each other.
    std::vector<std::byte*> buffers;
    for (int i = 0; i < 2 * ranks; ++i) buffers.push_back(allocate(bytes));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
            try {
                Member member(rank, ranks, id, buffers[2 * rank], buffers[2 * rank + 1]);
                body(member);
                member.barrier();
            } catch (const std::exception& error) {
                std::fflush(stdout);
                std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
                _exit(1);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::byte* buffer : buffers) GPU_CHECK(cudaFree(buffer));
}

}  // namespace ringccl::gpu_bench
