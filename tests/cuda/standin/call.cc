#include "call.h"

#include <pthread.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "settings.h"

namespace standin {
namespace {

std::atomic<cudaError_t> sticky{cudaSuccess};
thread_local cudaError_t last = cudaSuccess;
thread_local bool in_host_function = false;

// CUDA does not survive a fork: the child has the handles, but neither the driver's threads nor its context.
std::atomic<bool> used{false};
std::atomic<bool> forked{false};

void watch_for_forks() {
    if (!used.exchange(true)) pthread_atfork(nullptr, nullptr, [] { forked = true; });
}

struct Counters {
    std::mutex mutex;
    std::map<std::string, size_t, std::less<>> calls;
};

Counters& counters() {
    static Counters& instance = *new Counters;
    return instance;
}

size_t count_up(const char* entry_point) {
    std::scoped_lock lock(counters().mutex);
    return ++counters().calls[entry_point];
}

bool allocates(std::string_view entry_point) {
    return entry_point.find("Malloc") != std::string_view::npos || entry_point.find("Alloc") != std::string_view::npos;
}

}  // namespace

cudaError_t sticky_error() {
    return sticky;
}

void set_sticky_error(cudaError_t error) {
    cudaError_t none = cudaSuccess;
    sticky.compare_exchange_strong(none, error);
}

cudaError_t record(cudaError_t error) {
    if (error != cudaSuccess) last = error;
    return error;
}

cudaError_t last_error() {
    return sticky != cudaSuccess ? sticky.load() : last;
}

void forget_last_error() {
    last = cudaSuccess;
}

HostFunctionScope::HostFunctionScope() {
    in_host_function = true;
}

HostFunctionScope::~HostFunctionScope() {
    in_host_function = false;
}

void count(const char* entry_point) {
    count_up(entry_point);
}

cudaError_t begin(const char* entry_point) {
    watch_for_forks();
    size_t calls = count_up(entry_point);
    if (forked) return cudaErrorInitializationError;
    if (in_host_function) return cudaErrorNotPermitted;
    if (sticky != cudaSuccess) return sticky;
    if (settings().devices.empty()) return cudaErrorNoDevice;
    const auto& failures = settings().failures;
    auto failure = failures.find(entry_point);
    if (failure == failures.end() || static_cast<size_t>(failure->second) != calls) return cudaSuccess;
    return allocates(entry_point) ? cudaErrorMemoryAllocation : cudaErrorUnknown;
}

}  // namespace standin

extern "C" size_t standin_count(const char* entry_point) {
    standin::Hidden hidden;
    std::scoped_lock lock(standin::counters().mutex);
    auto entry = standin::counters().calls.find(entry_point);
    return entry == standin::counters().calls.end() ? 0 : entry->second;
}
