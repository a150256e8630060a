// What the environment asks of the stand-in; read once, at the first call. README.md lists the variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace standin {

struct Settings {
    std::vector<int> devices;             // physical number of each device that this process sees
    int physical_devices = 1;             // STANDIN_DEVICES
    bool peer_access = true;              // unless STANDIN_NO_PEER
    bool stream_values = true;            // unless STANDIN_NO_STREAM_VALUES
    bool protect = false;                 // STANDIN_PROTECT: device memory faults under the host's hands
    bool real_grid = false;               // STANDIN_GRID=real; otherwise each kernel runs as <<<1, 1>>>
    size_t memory = size_t{16} << 30;     // STANDIN_MEMORY: bytes of each device
    size_t queue = 1024;                  // STANDIN_QUEUE: pieces of work that a stream holds; who brings more waits
    std::optional<uint64_t> seed;         // STANDIN_SEED: workers dawdle at random
    std::map<std::string, int> failures;  // STANDIN_FAIL=cudaMalloc:3,...: that call, counted from 1, fails
    int failing_launch = 0;               // STANDIN_FAIL_LAUNCH: that launch, counted from 1, fails as it runs
    std::string twin;                     // RINGCCL_STANDIN_TWIN, or libringccl_twin.so beside this library
};

const Settings& settings();

}  // namespace standin
