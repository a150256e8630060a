#include "backing.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <utility>

namespace standin {
namespace {

constexpr size_t page = 4096;
constexpr size_t noisy_bytes = size_t{16} << 20;  // more would only cost time

size_t whole_pages(size_t bytes) {
    return (bytes + page - 1) / page * page;
}

// What a cudaIpcMemHandle_t holds.
struct Ticket {
    uint64_t id[2];
    uint64_t size;
    int32_t process;
    int32_t fd;
    int32_t device;
};
static_assert(sizeof(Ticket) <= sizeof(cudaIpcMemHandle_t));

}  // namespace

struct Backing::Trailer {
    uint64_t id[2];
    int32_t device;
    std::atomic<uint32_t> freed;
};

Backing::Backing(Backing&& other) noexcept {
    *this = std::move(other);
}

Backing& Backing::operator=(Backing&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
    std::swap(fd_, other.fd_);
    std::swap(trailer_, other.trailer_);
    return *this;
}

Backing::~Backing() {
    if (base_) munmap(base_, mapped_);
    if (fd_ >= 0) close(fd_);
}

bool Backing::map(int fd) {
    void* base = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) return false;
    base_ = static_cast<char*>(base);
    trailer_ = reinterpret_cast<Trailer*>(base_ + mapped_ - page);
    return true;
}

Backing Backing::create(size_t bytes, int physical_device) {
    Backing backing;
    backing.size_ = bytes;
    backing.mapped_ = whole_pages(bytes) + page;
    backing.fd_ = memfd_create("standin", MFD_CLOEXEC);
    if (backing.fd_ < 0 || ftruncate(backing.fd_, static_cast<off_t>(backing.mapped_)) != 0 || !backing.map(backing.fd_))
        return {};
    if (getrandom(backing.trailer_->id, sizeof(Trailer::id), 0) != sizeof(Trailer::id)) return {};
    backing.trailer_->device = physical_device;
    std::memset(backing.base_, 0xa5, bytes < noisy_bytes ? bytes : noisy_bytes);
    return backing;
}

Backing Backing::open(const cudaIpcMemHandle_t& handle, int* physical_device) {
    Ticket ticket;
    std::memcpy(&ticket, &handle, sizeof ticket);
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", ticket.process, ticket.fd);
    // The number may be anything by now: a pipe, say, which open() would wait for.
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return {};
    int fd = ::open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return {};

    Backing backing;
    backing.size_ = ticket.size;
    backing.mapped_ = whole_pages(ticket.size) + page;
    bool right = fstat(fd, &status) == 0 && static_cast<size_t>(status.st_size) == backing.mapped_ && backing.map(fd) &&
                 std::memcmp(backing.trailer_->id, ticket.id, sizeof ticket.id) == 0 && !backing.freed();
    ::close(fd);
    if (!right) return {};
    *physical_device = backing.trailer_->device;
    return backing;
}

cudaIpcMemHandle_t Backing::handle() const {
    Ticket ticket{{trailer_->id[0], trailer_->id[1]}, size_, getpid(), fd_, trailer_->device};
    cudaIpcMemHandle_t handle{};
    std::memcpy(&handle, &ticket, sizeof ticket);
    return handle;
}

bool Backing::exported_by_this_process(const cudaIpcMemHandle_t& handle) const {
    Ticket ticket;
    std::memcpy(&ticket, &handle, sizeof ticket);
    return ticket.process == getpid() && std::memcmp(trailer_->id, ticket.id, sizeof ticket.id) == 0;
}

bool Backing::freed() const {
    return trailer_ == nullptr || trailer_->freed;
}

void Backing::set_open(bool open) {
    if (trailer_) mprotect(base_, mapped_ - page, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void Backing::free() {
    bool owner = fd_ >= 0;
    if (owner) trailer_->freed = 1;
    trailer_ = nullptr;
    mmap(base_, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (owner) close(std::exchange(fd_, -1));
}

}  // namespace standin
