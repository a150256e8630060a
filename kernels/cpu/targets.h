// Which instruction sets the kernels are compiled for. Include before any Highway header.
#pragma once

// On x86 that leaves AVX-512, AVX2, SSE4 and, for anything older, portable code: processors with SSSE3 but without SSE4 and AES
// are too rare to pay for with compile time and size.
#define HWY_DISABLED_TARGETS HWY_SSSE3

// The portable code is that of 128-bit vectors. Highway falls back to single lanes for GCC, which it suspects of miscompiling
// the former; the kernel tests run it, and single lanes cannot hold two 16-bit elements.
#define HWY_BROKEN_EMU128 0
