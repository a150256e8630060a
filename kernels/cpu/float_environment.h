// The default floating-point environment (round to nearest even, denormals kept, no traps) for as long as an object lives.
//
// The environment belongs to the caller's thread: frameworks switch denormals off and numerical code changes the rounding.
// Ranks whose threads differ in that would get different bits, so the kernels do not follow it.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace ringccl {

class FloatEnvironment {
public:
    FloatEnvironment() : saved_(control()) {
        if ((saved_ & kControls) != kDefault) set_control((saved_ & ~kControls) | kDefault);
    }
    ~FloatEnvironment() {
        if ((saved_ & kControls) != kDefault) set_control(saved_);
    }
    FloatEnvironment(const FloatEnvironment&) = delete;
    FloatEnvironment& operator=(const FloatEnvironment&) = delete;

private:
#if defined(__SSE2__)
    // MXCSR: flush-to-zero (15), rounding (14-13), exceptions masked (12-7), denormals-are-zero (6).
    using Word = uint32_t;
    static constexpr Word kControls = 0xffc0, kDefault = 0x1f80;
    static Word control() {
        return _mm_getcsr();
    }
    static void set_control(Word word) {
        _mm_setcsr(word);
    }
#elif defined(__aarch64__)
    // FPCR: alternative half precision (26), default NaN (25), flush-to-zero (24), rounding (23-22), flush float16 (19),
    // traps (15, 12-8). All zero by default.
    using Word = uint64_t;
    static constexpr Word kControls = 0x07c89f00, kDefault = 0;
    static Word control() {
        Word word;
        asm volatile("mrs %0, fpcr" : "=r"(word));
        return word;
    }
    static void set_control(Word word) {
        asm volatile("msr fpcr, %0" : : "r"(word));
    }
#else
    using Word = uint32_t;
    static constexpr Word kControls = 0, kDefault = 0;
    static Word control() {
        return 0;
    }
    static void set_control(Word) {}
#endif

    const Word saved_;
};

}  // namespace ringccl
