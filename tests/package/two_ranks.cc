// A small C++ program against the installed library: two ranks, one thread each.
#include <cstdio>
#include <functional>
#include <ringccl/ringccl.hpp>
#include <thread>
#include <vector>

static bool right[2] = {};

static void work(ring::Communicator& comm) {
    try {
        const int rank = comm.rank();
        std::vector<double> data(1000, rank + 1.0);
        comm.allReduce(data, data);
        std::vector<int> mine(1, rank), all(2);
        comm.allGather(mine, all);
        right[rank] = data.front() == 3 && data.back() == 3 && all[0] == 0 && all[1] == 1;
    } catch (const ring::Error& error) {
        std::fprintf(stderr, "%s: %s\n", ringGetErrorString(error.code()), error.what());
    }
}

int main() {
    auto comms = ring::Communicator::all(2);
    std::vector<std::thread> threads;
    for (auto& comm : comms) threads.emplace_back(work, std::ref(comm));
    for (auto& thread : threads) thread.join();
    if (!right[0] || !right[1]) return 1;
    std::puts("two ranks agree");
    return 0;
}
