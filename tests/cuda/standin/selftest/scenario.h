// A scenario is a small CUDA program. Each runs in a process of its own, for the stand-in reads the environment once, and an
// error 700 stays for good. It says whether all was as it should be.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdio>
#include <map>
#include <string>

namespace selftest {

using Scenario = bool (*)();

inline std::map<std::string, Scenario>& scenarios() {
    static std::map<std::string, Scenario> instance;
    return instance;
}

struct Registration {
    Registration(const char* name, Scenario scenario) { scenarios()[name] = scenario; }
};

inline bool report(const char* file, int line, const char* text) {
    std::fprintf(stderr, "%s:%d: %s (last error: %s)\n", file, line, text, cudaGetErrorName(cudaPeekAtLastError()));
    return false;
}

}  // namespace selftest

#define SCENARIO(name)                                                    \
    static bool name();                                                   \
    static const selftest::Registration registration_##name(#name, name); \
    static bool name()

// Ends the scenario unless the condition holds.
#define NEED(condition) \
    if (!(condition)) return selftest::report(__FILE__, __LINE__, #condition)
#define NEED_OK(expression) NEED((expression) == cudaSuccess)
