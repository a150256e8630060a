#include "edges.h"

// ThreadSanitizer's entry points; null in any other process.
extern "C" {
__attribute__((weak)) void __tsan_acquire(void*);
__attribute__((weak)) void __tsan_release(void*);
__attribute__((weak)) void __tsan_read_range(void*, unsigned long);
__attribute__((weak)) void __tsan_write_range(void*, unsigned long);
__attribute__((weak)) void AnnotateIgnoreReadsBegin(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreReadsEnd(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreWritesBegin(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreWritesEnd(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreSyncBegin(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreSyncEnd(const char* file, int line);
}

namespace standin {
namespace {

thread_local int hidden_depth = 0;

void hide() {
    if (!AnnotateIgnoreSyncBegin) return;
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}

void show() {
    if (!AnnotateIgnoreSyncEnd) return;
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

}  // namespace

Hidden::Hidden() {
    if (hidden_depth++ == 0) hide();
}

Hidden::~Hidden() {
    if (--hidden_depth == 0) show();
}

Seen::Seen() : depth_(hidden_depth) {
    hidden_depth = 0;
    if (depth_ > 0) show();
}

Seen::~Seen() {
    hidden_depth = depth_;
    if (depth_ > 0) hide();
}

void release(const void* token) {
    if (!__tsan_release) return;
    Seen seen;
    __tsan_release(const_cast<void*>(token));
}

void acquire(const void* token) {
    if (!__tsan_acquire) return;
    Seen seen;
    __tsan_acquire(const_cast<void*>(token));
}

void announce_read(const void* memory, size_t bytes) {
    if (!__tsan_read_range) return;
    Seen seen;
    __tsan_read_range(const_cast<void*>(memory), bytes);
}

void announce_write(void* memory, size_t bytes) {
    if (!__tsan_write_range) return;
    Seen seen;
    __tsan_write_range(memory, bytes);
}

}  // namespace standin
