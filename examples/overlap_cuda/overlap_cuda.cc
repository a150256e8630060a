// A training step that hides its communication: backward computation goes from the last layer to the first on one CUDA stream,
// and the gradient of each layer is summed over all ranks on a second stream while the layers before it are still computed.
// The computation is pretended, by copies to and fro; its gradients are real, and their sums are checked.
//
//     ./overlap_cuda [RANKS [LAYERS [MIB]]]      # 2 ranks, 8 layers of 16 MiB each
//
// Ranks are threads here, rank r on device r modulo the number of devices.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ringccl/ringccl.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

constexpr int kPasses = 24;  // copies that stand for the backward computation of one layer
constexpr int kSteps = 5;

struct Model {
    int ranks = 2, layers = 8;
    size_t count = size_t{16} << 18;  // of floats in a layer
};

void check(cudaError_t error) {
    if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

// Small integers, whose sums are exact.
float gradient(int rank, int layer, size_t i) {
    return static_cast<float>((rank + 1) * (layer + 1) + static_cast<int>(i % 16));
}

float gradient_sum(const Model& model, int layer, size_t i) {
    float sum = 0;
    for (int rank = 0; rank < model.ranks; ++rank) sum += gradient(rank, layer, i);
    return sum;
}

class Trainer {
public:
    Trainer(const Model& model, int rank, const ringUniqueId& id) : model_(model) {
        int devices = 0;
        check(cudaGetDeviceCount(&devices));
        ringConfig_t config = RINGCCL_CONFIG_INITIALIZER;
        config.deviceKind = ringDeviceCuda;
        config.deviceIndex = rank % devices;
        check(cudaSetDevice(config.deviceIndex));
        check(cudaStreamCreateWithFlags(&compute_, cudaStreamNonBlocking));
        check(cudaStreamCreateWithFlags(&communication_, cudaStreamNonBlocking));
        check(cudaEventCreateWithFlags(&summed_, cudaEventDisableTiming));
        check(cudaMalloc(&activations_, bytes()));
        std::vector<float> values(model.count);
        for (int number = 0; number < model.layers; ++number) {
            Layer& layer = layers_.emplace_back();
            check(cudaEventCreateWithFlags(&layer.ready, cudaEventDisableTiming));
            check(cudaMalloc(&layer.computed, bytes()));
            check(cudaMalloc(&layer.gradient, bytes()));
            for (size_t i = 0; i < model.count; ++i) values[i] = gradient(rank, number, i);
            check(cudaMemcpy(layer.computed, values.data(), bytes(), cudaMemcpyDefault));
        }
        comm_ = ring::Communicator::join(id, model.ranks, rank, &config);
    }

    // Seconds that a step takes. The memory stays until the program ends: cudaFree waits for the whole device, where another
    // rank may be waiting for this one.
    double train(bool overlap) {
        step(overlap);
        finish();
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < kSteps; ++i) step(overlap);
        finish();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / kSteps;
    }

    size_t count_wrong() {
        size_t wrong = 0;
        std::vector<float> values(model_.count);
        for (int number = 0; number < model_.layers; ++number) {
            check(cudaMemcpyAsync(values.data(), layers_[number].gradient, bytes(), cudaMemcpyDefault, compute_));
            check(cudaStreamSynchronize(compute_));
            for (size_t i = 0; i < values.size(); ++i) wrong += values[i] != gradient_sum(model_, number, i);
        }
        return wrong;
    }

private:
    struct Layer {
        void* computed;  // what the pretended computation comes to
        void* gradient;
        cudaEvent_t ready;
    };

    size_t bytes() const { return model_.count * sizeof(float); }

    void compute_gradient(const Layer& layer) {
        for (int pass = 1; pass < kPasses; ++pass)
            check(cudaMemcpyAsync(activations_, layer.computed, bytes(), cudaMemcpyDefault, compute_));
        check(cudaMemcpyAsync(layer.gradient, layer.computed, bytes(), cudaMemcpyDefault, compute_));
    }

    void sum(const Layer& layer, cudaStream_t stream) {
        ring::check(ringAllReduce(layer.gradient, layer.gradient, model_.count, ringFloat32, ringSum, comm_.get(), stream));
    }

    void step(bool overlap) {
        for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
            compute_gradient(*layer);
            if (!overlap) {
                sum(*layer, compute_);
                continue;
            }
            check(cudaEventRecord(layer->ready, compute_));
            check(cudaStreamWaitEvent(communication_, layer->ready, 0));
            sum(*layer, communication_);
        }
        if (!overlap) return;
        // The optimizer, which would come next, needs all gradients.
        check(cudaEventRecord(summed_, communication_));
        check(cudaStreamWaitEvent(compute_, summed_, 0));
    }

    // A call on a device has returned when it is enqueued; what fails later is told by the communicator.
    void finish() {
        check(cudaStreamSynchronize(compute_));
        ringResult_t state = ringSuccess;
        ring::check(ringCommGetAsyncError(comm_.get(), &state));
        if (state != ringSuccess && state != ringInProgress) throw ring::Error(state, ringGetLastError(comm_.get()));
    }

    const Model model_;
    cudaStream_t compute_ = nullptr, communication_ = nullptr;
    cudaEvent_t summed_ = nullptr;
    void* activations_ = nullptr;
    std::vector<Layer> layers_;
    ring::Communicator comm_;
};

void run(const Model& model, int rank, const ringUniqueId& id) try {
    Trainer trainer(model, rank, id);
    const double apart = trainer.train(false);
    const double beside = trainer.train(true);
    const size_t wrong = trainer.count_wrong();
    std::printf("rank %d: %.2f ms a step without overlap, %.2f ms with; %zu wrong sums\n", rank, apart * 1e3, beside * 1e3,
                wrong);
    if (wrong != 0) std::_Exit(1);
} catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    std::_Exit(1);  // the other ranks may be waiting for this one
}

}  // namespace

int main(int argc, char** argv) try {
    Model model;
    if (argc > 1) model.ranks = std::max(1, std::atoi(argv[1]));
    if (argc > 2) model.layers = std::max(1, std::atoi(argv[2]));
    if (argc > 3) model.count = static_cast<size_t>(std::max(1, std::atoi(argv[3]))) << 18;
    const ringUniqueId id = ring::Communicator::uniqueId();
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < model.ranks; ++rank) ranks.emplace_back(run, model, rank, id);
    for (std::thread& rank : ranks) rank.join();
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
