// What nvcc's host code calls as a module is loaded and unloaded. Kernels are registered by their mangled names; the code in
// the fat binary is for a GPU, and is left alone.
#include <cuda_runtime_api.h>

#include "edges.h"
#include "kernel.h"

using namespace standin;

extern "C" {

void** __cudaRegisterFatBinary(void* binary) {
    Hidden hidden;
    return new void*(binary);
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) {
    Hidden hidden;
    delete handle;
}

char __cudaInitModule(void**) {
    return 0;
}

void __cudaRegisterFunction(void**, const char* host_function, char*, const char* device_name, int, uint3*, uint3*, dim3*,
                            dim3*, int*) {
    Hidden hidden;
    register_kernel(host_function, device_name);
}

// Variables of the device are not modelled: none of ringccl's kernels has one.
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}

void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, size_t, int, int) {}

}  // extern "C"
