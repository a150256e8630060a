#include "device/shared_block.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

namespace ringccl {
namespace {

size_t whole_pages(size_t bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
}

}  // namespace

Result<std::shared_ptr<SharedBlock>> SharedBlock::create(const char* label, size_t bytes) {
    std::shared_ptr<SharedBlock> block(new SharedBlock);
    block->bytes_ = whole_pages(bytes);
    if (block->bytes_ < bytes) return failure(ringInvalidArgument, "{} bytes of shared memory: the size overflows", bytes);
    if (getrandom(&block->id_, sizeof block->id_, 0) != sizeof block->id_) return system_failure(errno, "getrandom");
    block->id_ |= 1;

    block->fd_.reset(memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!block->fd_) return system_failure(errno, "memfd_create for {} bytes ({})", bytes, label);
    if (ftruncate(block->fd(), static_cast<off_t>(block->bytes_)) != 0)
        return system_failure(errno, "ftruncate of shared memory to {} bytes ({})", bytes, label);
    // Sealed, so that no process that was given it can shrink it under another one's feet.
    if (fcntl(block->fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return system_failure(errno, "sealing shared memory ({})", label);

    void* at = mmap(nullptr, block->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, block->fd(), 0);
    if (at == MAP_FAILED) return system_failure(errno, "mmap of {} bytes of shared memory ({})", bytes, label);
    block->data_ = static_cast<std::byte*>(at);
    // Large blocks profit from huge pages where the system grants them to shared memory; a refusal costs nothing.
    madvise(at, block->bytes_, MADV_HUGEPAGE);
    // A forked child has no part in the communicator and would only pay for the page tables.
    madvise(at, block->bytes_, MADV_DONTFORK);
    enrol(block);
    return block;
}

SharedBlock::~SharedBlock() {
    if (data_ != nullptr) munmap(data_, bytes_);
}

void SharedBlock::discard() {
    fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes_));
}

Result<MappedBlock> MappedBlock::map(int fd, size_t bytes, bool writable) {
    void* at = mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return system_failure(errno, "mmap of {} bytes of a peer's memory", bytes);
    madvise(at, bytes, MADV_DONTFORK);
    return MappedBlock(static_cast<std::byte*>(at), bytes, [at, bytes] { munmap(at, bytes); });
}

}  // namespace ringccl
