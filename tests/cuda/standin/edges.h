// What ThreadSanitizer is told, if the process runs under it. The stand-in is never instrumented, but the sanitizer sees its
// locks, allocations and copies all the same, and would take each lock of ours for an order between two streams that a GPU does
// not give. So the stand-in's own doings are hidden, and each edge that CUDA promises is announced.
#pragma once

#include <cstddef>

namespace standin {

// While one of these lives, ThreadSanitizer neither looks at this thread nor learns order from its locks. They nest.
class Hidden {
public:
    Hidden();
    ~Hidden();
    Hidden(const Hidden&) = delete;
    Hidden& operator=(const Hidden&) = delete;
};

// The user's code, run from within the stand-in: kernels and host functions.
class Seen {
public:
    Seen();
    ~Seen();
    Seen(const Seen&) = delete;
    Seen& operator=(const Seen&) = delete;

private:
    int depth_;
};

// All that this thread did is before what another does after it acquired the same token.
void release(const void* token);
void acquire(const void* token);
// Accesses to the user's memory on the user's behalf.
void announce_read(const void* memory, size_t bytes);
void announce_write(void* memory, size_t bytes);

}  // namespace standin
