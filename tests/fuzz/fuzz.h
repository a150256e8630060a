// What the fuzz targets share: taking an input apart, and an assertion that every build keeps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace ringccl::fuzz {

// The bytes of an input, handed out from the front; zeros after the end.
class Bytes {
public:
    Bytes(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

    uint8_t byte() {
        if (rest_.empty()) return 0;
        uint8_t first = static_cast<uint8_t>(rest_.front());
        rest_.remove_prefix(1);
        return first;
    }
    std::string_view take(size_t most) {
        std::string_view taken = rest_.substr(0, most);
        rest_.remove_prefix(taken.size());
        return taken;
    }
    std::string_view rest() { return take(rest_.size()); }
    bool empty() const { return rest_.empty(); }

private:
    std::string_view rest_;
};

inline void must(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "not so: %s\n", what);
    std::abort();
}

}  // namespace ringccl::fuzz
