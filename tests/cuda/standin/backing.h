// The pages behind one device allocation: a memfd, so that another process can map the same ones. A last page, beyond what the
// user sees, holds what proves to the other process that it found the right file, and tells it when the owner frees it.
#pragma once

#include <driver_types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace standin {

class Backing {
public:
    Backing() = default;
    Backing(Backing&& other) noexcept;
    Backing& operator=(Backing&& other) noexcept;
    ~Backing();

    // Both are empty if it cannot be had. What is created holds noise, as a GPU's memory does.
    static Backing create(size_t bytes, int physical_device);
    static Backing open(const cudaIpcMemHandle_t& handle, int* physical_device);

    explicit operator bool() const { return base_ != nullptr; }
    char* base() const { return base_; }
    size_t size() const { return size_; }

    cudaIpcMemHandle_t handle() const;
    bool exported_by_this_process(const cudaIpcMemHandle_t& handle) const;
    // Whether the process that created it has freed it.
    bool freed() const;
    // Whether the user's part can be touched.
    void set_open(bool open);
    // The pages are gone, but the addresses stay taken, so that a late touch faults. If this is the owner, all may see it.
    void free();

private:
    struct Trailer;

    char* base_ = nullptr;
    size_t size_ = 0;    // what was asked for
    size_t mapped_ = 0;  // whole pages, the trailer's too
    int fd_ = -1;        // the owner's only
    Trailer* trailer_ = nullptr;

    bool map(int fd);
};

}  // namespace standin
