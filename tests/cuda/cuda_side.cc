// Ranks on CUDA devices: rank r on device r modulo their number, with a non-blocking stream of its own. This is the main
// program of the tests that it is linked with; the runtime may be the real one or the stand-in.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <tuple>

#include "support/device_side.h"
#include "support/environment.h"

namespace ringccl::test {
namespace {

Verdict worked_on_device(cudaError_t error, const char* call) {
    return error == cudaSuccess ? good() : bad("{} gave {}", call, cudaGetErrorString(error));
}

class CudaSide final : public DeviceSide {
public:
    Verdict prepare(ringConfig_t& config, int rank) override {
        int count = 0;
        if (Verdict v = worked_on_device(cudaGetDeviceCount(&count), "cudaGetDeviceCount"); !v) return v;
        config.deviceKind = ringDeviceCuda;
        config.deviceIndex = rank % count;
        return worked_on_device(cudaSetDevice(config.deviceIndex), "cudaSetDevice");
    }

    void* stream(int rank) override {
        std::lock_guard lock(mutex_);
        cudaStream_t& stream = streams_[rank];
        if (stream == nullptr) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        return stream;
    }

    // Never freed: cudaFree waits for the whole device, and streams of other ranks may be waiting for this one.
    std::byte* memory(const Member& me, int number, size_t bytes, size_t shift) override {
        size_t room = 4096;
        while (room < bytes + 64) room *= 2;
        std::lock_guard lock(mutex_);
        void*& at = memory_[{me.rank, number, room}];
        if (at == nullptr) cudaMalloc(&at, room);
        return static_cast<std::byte*>(at) + shift;
    }

    Verdict copy(const Member& me, std::byte* to, const std::byte* from, size_t bytes) override {
        return worked_on_device(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(me)), "cudaMemcpyAsync");
    }

    Verdict wait(const Member& me) override {
        if (Verdict v = worked_on_device(cudaStreamSynchronize(stream_of(me)), "cudaStreamSynchronize"); !v) return v;
        ringResult_t state = ringSuccess;
        if (Verdict v = worked(ringCommGetAsyncError(me.comm, &state), "ringCommGetAsyncError"); !v) return v;
        if (state == ringSuccess || state == ringInProgress) return good();
        return bad("the communicator failed with {}: {}", ringGetErrorString(state), ringGetLastError(me.comm));
    }

private:
    static cudaStream_t stream_of(const Member& me) { return static_cast<cudaStream_t>(me.stream); }

    std::mutex mutex_;
    std::map<int, cudaStream_t> streams_;
    std::map<std::tuple<int, int, size_t>, void*> memory_;
};

}  // namespace
}  // namespace ringccl::test

int main(int argc, char** argv) {
    // What the environment does not say.
    setenv("RINGCCL_CUDA_MODULE", CUDA_MODULE, false);
    setenv("RINGCCL_STANDIN_TWIN", CUDA_TWIN, false);
    setenv("RINGCCL_TEST_QUICK", "1", false);
    ::testing::InitGoogleTest(&argc, argv);
    static ringccl::test::CudaSide side;
    ringccl::test::DeviceSide::of_program() = &side;
    return RUN_ALL_TESTS();
}
