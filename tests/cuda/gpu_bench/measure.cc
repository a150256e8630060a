#include "measure.h"

namespace ringccl::gpu_bench {
namespace {

constexpr int kMostCalls = 500;

class Event {
public:
    Event() { GPU_CHECK(cudaEventCreate(&event_)); }
    ~Event() { cudaEventDestroy(event_); }
    operator cudaEvent_t() const { return event_; }  // NOLINT: implicit on purpose

private:
    cudaEvent_t event_;
};

}  // namespace

double stream_seconds(cudaStream_t stream, const std::function<void()>& enqueue) {
    Event begin, end;
    GPU_CHECK(cudaEventRecord(begin, stream));
    enqueue();
    GPU_CHECK(cudaEventRecord(end, stream));
    GPU_CHECK(cudaStreamSynchronize(stream));
    float milliseconds = 0;
    GPU_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    return milliseconds / 1e3;
}

double median_seconds(cudaStream_t stream, const Effort& effort, const std::function<void(int)>& enqueue) {
    int number = 0;
    auto seconds_of = [&](int calls) {
        return stream_seconds(stream,
                              [&] {
                                  for (int i = 0; i < calls; ++i) enqueue(number++);
                              }) /
               calls;
    };
    seconds_of(1);
    const int calls = std::clamp(static_cast<int>(effort.round_seconds / std::max(seconds_of(2), 1e-7)), 2, kMostCalls);
    std::vector<double> rounds;
    for (int round = 0; round < effort.rounds; ++round) rounds.push_back(seconds_of(calls));
    return median(rounds);
}

}  // namespace ringccl::gpu_bench
