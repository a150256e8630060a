// Environment variables for the length of a test.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ringccl::test {

class ScopedEnv {
public:
    ScopedEnv() = default;
    ScopedEnv(std::initializer_list<std::pair<std::string, std::string>> variables) {
        for (auto& [name, value] : variables) set(name, value);
    }
    ~ScopedEnv();
    ScopedEnv(const ScopedEnv&) = delete;
    ScopedEnv& operator=(const ScopedEnv&) = delete;

    void set(const std::string& name, const std::string& value);

private:
    std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

// RINGCCL_TEST_QUICK=1 asks for a thinned-out product of cases, for the sanitizer builds, where each case takes ten times as
// long.
bool quick();

// One way for ranks on one machine to reach each other.
struct Path {
    const char* name;
    const char* transport;
    bool pointer;  // threads may read each other's buffers
    bool cma;      // ranks may read each other's buffers by process_vm_readv

    void apply(ScopedEnv& env) const;
};

inline constexpr Path kPointer = {"p2p_pointer", "p2p", true, false};
inline constexpr Path kMemfd = {"p2p_memfd", "p2p", false, false};
inline constexpr Path kCma = {"p2p_cma", "p2p", false, true};
inline constexpr Path kTcp = {"tcp", "tcp", false, false};

}  // namespace ringccl::test
