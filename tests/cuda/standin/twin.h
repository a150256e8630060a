// Between the stand-in and the twin: a shared library with the kernels of a CUDA module, compiled once more, by the host's
// compiler. The stand-in opens it at the first launch, and finds each kernel by the mangled name that nvcc registered it with.
#pragma once

#include <stddef.h>
#include <vector_types.h>

extern "C" {

struct StandinKernel {
    const char* name;  // mangled
    const void* code;  // for run()
    // All threads of all blocks, one after the other. `arguments` points to one value after the other.
    void (*run)(const void* code, void** arguments, dim3 grid, dim3 block);
    size_t argument_count;
    const size_t* argument_sizes;
};

// What a twin exports.
const StandinKernel* standin_kernels(size_t* count);

// What the stand-in exports, beyond CUDA's own.
//
// To be called in each loop in which a kernel waits for another thread: gives way to that.
void standin_pause();
// How often this process has called an entry point of the runtime, e.g. "cudaDeviceSynchronize".
size_t standin_count(const char* entry_point);
}
