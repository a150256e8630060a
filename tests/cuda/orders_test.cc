// The order of work in CUDA streams: a collective comes behind what its stream holds and before what is put there next, holds
// its own stream and no other, and never the calling thread or the whole device.
#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <thread>

#include "device_values.h"
#include "support/environment.h"
#include "support/thread_ranks.h"

namespace ringccl::test {
namespace {

using std::chrono::milliseconds;

constexpr size_t kCount = 30011;

class Orders : public ::testing::TestWithParam<Path> {
protected:
    void SetUp() override { GetParam().apply(env_); }
    WorldOptions world(int size = 3) const { return {.size = size, .transport = GetParam().transport}; }
    ScopedEnv env_;
};

// A host function that holds a stream until it is let go. The function may still be looking when the gate has gone.
class Gate {
public:
    explicit Gate(cudaStream_t stream) {
        const auto hold = [](void* argument) {
            const std::unique_ptr<Flag> open(static_cast<Flag*>(argument));
            (*open)->wait(false);
        };
        cudaLaunchHostFunc(stream, hold, new Flag(open_));
    }
    ~Gate() {
        *open_ = true;
        open_->notify_all();
    }

private:
    using Flag = std::shared_ptr<std::atomic<bool>>;

    const Flag open_ = std::make_shared<std::atomic<bool>>(false);
};

int device_of(const Member& me) {
    int device = 0;
    ringCommDevice(me.comm, &device);
    return device;
}

TEST_P(Orders, WhatIsBeforeIsDoneAndWhatIsBehindWaits) {
    run_ranks(world(), [](const Member& me) {
        DeviceValues data(me, 0, std::vector<int32_t>(kCount, -1)), next(me, 1, std::vector<int32_t>(kCount, -2));
        DeviceValues input(me, 2, numbers(me.rank, kCount)), result(me, 3, std::vector<int32_t>(kCount));
        if (Verdict v = await_side(me); !v) return v;
        for (int round = 0; round < 10; ++round) {
            {
                Gate gate(stream_of(me));
                cudaMemcpyAsync(data.data(), input.data(), data.bytes(), cudaMemcpyDefault, stream_of(me));
                if (Verdict v = reduce(me, data.data(), next.data(), kCount, me.stream); !v) return v;
                cudaMemsetAsync(data.data(), 0xff, data.bytes(), stream_of(me));
                cudaMemcpyAsync(result.data(), next.data(), next.bytes(), cudaMemcpyDefault, stream_of(me));
                cudaMemsetAsync(next.data(), 0xff, next.bytes(), stream_of(me));
                std::this_thread::sleep_for(milliseconds(round % 3));
            }
            if (Verdict v = result.are(sum_of_numbers(me.size, kCount)); !v) return v << ", round " << round;
        }
        return good();
    });
}

// More calls than a stream has room for, while the others are late: the call that finds it full waits, and nobody else does.
TEST_P(Orders, AFullStream) {
    run_ranks(world(2), [](const Member& me) {
        constexpr int kCalls = 1500;
        DeviceValues data(me, 0, {1});
        if (me.rank == 1) std::this_thread::sleep_for(milliseconds(200));
        for (int call = 0; call < kCalls; ++call)
            if (Verdict v =
                    worked(ringAllReduce(data.data(), data.data(), 1, ringInt32, ringMax, me.comm, me.stream), "ringAllReduce");
                !v)
                return v;
        return data.are({1});
    });
}

TEST_P(Orders, ACallReturnsAndHoldsItsOwnStreamOnly) {
    std::atomic<bool> late_may_come = false;
    run_ranks(world(2), [&](const Member& me) {
        DeviceValues data(me, 0, numbers(me.rank, kCount)), other(me, 1, std::vector<int32_t>(kCount, 5));
        if (Verdict v = await_side(me); !v) return v;
        if (me.rank == 1) late_may_come.wait(false);
        if (Verdict v = reduce(me, data.data(), data.data(), kCount, me.stream); !v) return v;
        if (me.rank == 0) {
            if (cudaStreamQuery(stream_of(me)) != cudaErrorNotReady)
                return bad("the stream has passed a collective that nobody joined");
            cudaStream_t beside;
            cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking);
            cudaMemsetAsync(other.data(), 0, other.bytes(), beside);
            if (Verdict v = cuda_worked(cudaStreamSynchronize(beside), "another stream"); !v) return v;
            cudaStreamDestroy(beside);
            if (cudaStreamQuery(stream_of(me)) != cudaErrorNotReady) return bad("the stream did not wait");
            late_may_come = true;
            late_may_come.notify_all();
        }
        return data.are(sum_of_numbers(me.size, kCount));
    });
}

// Each thread's own default stream is a stream like others.
TEST_P(Orders, PerThreadDefaultStreams) {
    run_ranks(world(), [](Member me) {
        me.stream = cudaStreamPerThread;
        DeviceValues data(me, 0, numbers(me.rank, kCount));
        if (Verdict v = reduce(me, data.data(), data.data(), kCount, me.stream); !v) return v;
        return data.are(sum_of_numbers(me.size, kCount));
    });
}

// One communicator, two threads, and a default stream of each: neither's work begins before its own stream has come there.
TEST_P(Orders, PerThreadDefaultStreamsOfTwoThreads) {
    run_ranks(world(2), [](const Member& me) {
        for (int round = 0; round < 5; ++round) {
            Verdict first = good(), second = good();
            // The calls are made in the same order on all ranks, by turns.
            std::barrier<> turn(2);
            std::thread other([&] {
                cudaSetDevice(device_of(me));
                Member here = me;
                here.stream = cudaStreamPerThread;
                DeviceValues data(here, 10, std::vector<int32_t>(kCount, -1)), input(here, 11, numbers(me.rank, kCount, 1));
                {
                    const Gate gate(stream_of(here));
                    cudaMemcpyAsync(data.data(), input.data(), data.bytes(), cudaMemcpyDefault, stream_of(here));
                    second = reduce(here, data.data(), data.data(), kCount, here.stream);
                    turn.arrive_and_wait();
                    std::this_thread::sleep_for(milliseconds(20));
                }
                if (second) second = data.are(sum_of_numbers(me.size, kCount, 1));
            });
            Member here = me;
            here.stream = cudaStreamPerThread;
            turn.arrive_and_wait();
            DeviceValues data(here, 12, numbers(me.rank, kCount));
            first = reduce(here, data.data(), data.data(), kCount, here.stream);
            if (first) first = data.are(sum_of_numbers(me.size, kCount));
            other.join();
            if (!first) return first;
            if (!second) return second;
        }
        return good();
    });
}

TEST_P(Orders, TheLegacyDefaultStream) {
    run_ranks(world(1), [](Member me) {
        DeviceValues data(me, 0, numbers(me.rank, kCount)), copy(me, 1, std::vector<int32_t>(kCount));
        if (Verdict v = await_side(me); !v) return v;
        // A blocking stream, which the default stream waits for and which waits for it.
        cudaStream_t blocking;
        cudaStreamCreate(&blocking);
        cudaMemsetAsync(data.data(), 0, data.bytes(), blocking);
        if (Verdict v = reduce(me, data.data(), copy.data(), kCount, nullptr); !v) return v;
        cudaMemcpyAsync(data.data(), copy.data(), data.bytes(), cudaMemcpyDefault, blocking);
        cudaStreamSynchronize(blocking);
        cudaStreamDestroy(blocking);
        return data.are(std::vector<int32_t>(kCount, 0));
    });
}

TEST_P(Orders, SeveralStreamsOfOneCommunicator) {
    run_ranks(world(), [](const Member& me) {
        cudaStream_t beside;
        cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking);
        DeviceValues one(me, 0, numbers(me.rank, kCount)), two(me, 1, numbers(me.rank, kCount, 1));
        if (Verdict v = await_side(me); !v) return v;
        for (int round = 0; round < 5; ++round) {
            one.set(numbers(me.rank, kCount));
            two.set(numbers(me.rank, kCount, 1));
            if (Verdict v = await_side(me); !v) return v;
            if (Verdict v = reduce(me, one.data(), one.data(), kCount, me.stream); !v) return v;
            if (Verdict v = reduce(me, two.data(), two.data(), kCount, beside); !v) return v;
            if (Verdict v = cuda_worked(cudaStreamSynchronize(beside), "cudaStreamSynchronize"); !v) return v;
            if (Verdict v = two.are(sum_of_numbers(me.size, kCount, 1)); !v) return v;
            if (Verdict v = one.are(sum_of_numbers(me.size, kCount)); !v) return v;
        }
        cudaStreamDestroy(beside);
        return good();
    });
}

TEST_P(Orders, Groups) {
    run_ranks(world(), [](const Member& me) {
        const int right = (me.rank + 1) % me.size, left = (me.rank + me.size - 1) % me.size;
        cudaStream_t beside;
        cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking);
        DeviceValues sum(me, 0, numbers(me.rank, kCount)), out(me, 1, numbers(me.rank, kCount, 2)),
            in(me, 2, std::vector<int32_t>(kCount));
        DeviceValues own(me, 3, std::vector<int32_t>(kCount));
        if (Verdict v = await_side(me); !v) return v;
        ringGroupStart();
        ringAllReduce(sum.data(), sum.data(), kCount, ringInt32, ringSum, me.comm, beside);
        ringSend(out.data(), kCount, ringInt32, right, me.comm, me.stream);
        ringRecv(in.data(), kCount, ringInt32, left, me.comm, me.stream);
        ringSend(out.data(), kCount, ringInt32, me.rank, me.comm, me.stream);
        ringRecv(own.data(), kCount, ringInt32, me.rank, me.comm, me.stream);
        if (Verdict v = worked(ringGroupEnd(), "ringGroupEnd"); !v) return v;
        cudaStreamSynchronize(beside);
        cudaStreamDestroy(beside);
        if (Verdict v = in.are(numbers(left, kCount, 2)); !v) return v;
        if (Verdict v = own.are(numbers(me.rank, kCount, 2)); !v) return v;
        return sum.are(sum_of_numbers(me.size, kCount));
    });
}

TEST_P(Orders, ACapturedStreamIsRefused) {
    run_ranks(world(2), [](const Member& me) {
        DeviceValues data(me, 0, numbers(me.rank, 10));
        if (Verdict v = await_side(me); !v) return v;
        cudaStream_t captured;
        cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking);
        cudaStreamBeginCapture(captured, cudaStreamCaptureModeThreadLocal);
        const ringResult_t result = ringAllReduce(data.data(), data.data(), 10, ringInt32, ringSum, me.comm, captured);
        cudaGraph_t graph;
        cudaStreamEndCapture(captured, &graph);
        cudaStreamDestroy(captured);
        if (result != ringInvalidUsage) return bad("a captured stream gave {}", ringGetErrorString(result));
        if (Verdict v = reduce(me, data.data(), data.data(), 10, me.stream); !v) return v;
        return data.are(sum_of_numbers(me.size, 10));
    });
}

// Each would wait for the other, so the second is told.
TEST_P(Orders, TwoRanksInOneStreamAreRefused) {
    std::barrier<> meet(2);
    run_ranks(world(2), [&](Member me) {
        int devices = 1;
        cudaGetDeviceCount(&devices);
        if (devices > 1) return good();
        DeviceValues data(me, 0, numbers(me.rank, 10));
        if (Verdict v = await_side(me); !v) return v;
        const Member own = me;
        if (me.rank == 0) {
            if (Verdict v = reduce(me, data.data(), data.data(), 10, nullptr); !v) return v;
            meet.arrive_and_wait();
            meet.arrive_and_wait();
            me.stream = nullptr;
        } else {
            meet.arrive_and_wait();
            const ringResult_t result =
                ringAllReduce(data.data(), data.data(), 10, ringInt32, ringSum, me.comm, cudaStreamLegacy);
            const std::string text = ringGetLastError(nullptr);
            meet.arrive_and_wait();
            if (result != ringInvalidUsage || text.find("stream of its own") == text.npos)
                return bad("{}: {}", ringGetErrorString(result), text);
            if (Verdict v = reduce(own, data.data(), data.data(), 10, own.stream); !v) return v;
        }
        return DeviceValues(data).are(sum_of_numbers(2, 10));
    });
}

// Once shapes are known: nothing that waits for the whole device, or that may.
TEST_P(Orders, NothingWaitsForTheDevice) {
    if (!on_standin()) GTEST_SKIP() << "only the stand-in counts calls";
    constexpr const char* kForbidden[] = {"cudaDeviceSynchronize", "cudaMalloc",    "cudaFree",         "cudaHostAlloc",
                                          "cudaFreeHost",          "cudaMemcpy",    "cudaHostRegister", "cudaHostUnregister",
                                          "cudaStreamSynchronize", "cudaMallocHost"};
    std::barrier<> meet(3);
    run_ranks(world(), [&](const Member& me) {
        DeviceValues data(me, 0, numbers(me.rank, kCount)), out(me, 1, std::vector<int32_t>(kCount));
        const auto work = [&](int rounds) {
            for (int round = 0; round < rounds; ++round) {
                if (Verdict v = reduce(me, data.data(), out.data(), kCount, me.stream); !v) return v;
                ringBroadcast(out.data(), out.data(), kCount, ringInt32, 1, me.comm, me.stream);
            }
            while (cudaStreamQuery(stream_of(me)) == cudaErrorNotReady) std::this_thread::yield();
            return good();
        };
        if (Verdict v = work(2); !v) return v;
        meet.arrive_and_wait();
        std::vector<size_t> before;
        for (const char* name : kForbidden) before.push_back(standin_count(name));
        meet.arrive_and_wait();
        if (Verdict v = work(20); !v) return v;
        meet.arrive_and_wait();
        for (size_t i = 0; i < before.size(); ++i)
            if (const size_t calls = standin_count(kForbidden[i]) - before[i]; calls != 0)
                return bad("{} calls of {}", calls, kForbidden[i]);
        meet.arrive_and_wait();
        return out.are(sum_of_numbers(me.size, kCount));
    });
}

INSTANTIATE_TEST_SUITE_P(, Orders, ::testing::Values(kPointer, kMemfd, kTcp),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ringccl::test
