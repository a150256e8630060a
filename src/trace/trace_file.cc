#include "trace/trace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

namespace ringccl {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;

constexpr std::string_view kOpening = "[\n";
constexpr std::string_view kFirstEvent = "[\n{\"name\":";  // how every timeline of ours begins
constexpr size_t kLongestLine = 64 << 10;
constexpr milliseconds kPatience{2000};  // of open()

// Bytes to lock: shared by all who have the file open, and held by the one who writes.
constexpr off_t kUsers = off_t{1} << 61;
constexpr off_t kWriter = kUsers + 1;

// The kernel dates files by its last tick, of which there are 100 to 1000 a second.
constexpr milliseconds kTick{10};
const system_clock::time_point kProcessBegan = system_clock::now();

enum class Lock { got, held_by_another, unsupported };

Lock lock(int fd, short how, off_t byte) {
    struct flock range {};
    range.l_type = how;
    range.l_whence = SEEK_SET;
    range.l_start = byte;
    range.l_len = 1;
    // Of the open file, not of the process, so that threads exclude each other too.
    if (::fcntl(fd, F_OFD_SETLK, &range) == 0) return Lock::got;
    return errno == EAGAIN || errno == EACCES ? Lock::held_by_another : Lock::unsupported;
}

// Tries for so long: a process that is stopped while it writes must not stop the others.
Lock lock_within(int fd, short how, off_t byte, milliseconds patience) {
    const auto until = steady_clock::now() + patience;
    while (true) {
        const Lock outcome = lock(fd, how, byte);
        if (outcome != Lock::held_by_another || steady_clock::now() >= until) return outcome;
        std::this_thread::sleep_for(microseconds(100));
    }
}

system_clock::time_point modified(const struct stat& info) {
    const auto since = std::chrono::seconds(info.st_mtim.tv_sec) + std::chrono::nanoseconds(info.st_mtim.tv_nsec);
    return system_clock::time_point(std::chrono::duration_cast<system_clock::duration>(since));
}

}  // namespace

Result<TraceFile> TraceFile::open(const std::string& name) {
    Fd fd(::open(name.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
    if (!fd) return system_failure(errno, "cannot open the timeline {} (RINGCCL_TIMELINE)", name);
    TraceFile file(name, std::move(fd));
    RINGCCL_TRY(file.begin());
    return file;
}

Status TraceFile::begin() {
    const int fd = file_.get();
    struct stat info {};
    if (::fstat(fd, &info) != 0) return system_failure(errno, "fstat of the timeline {}", name_);
    if (!S_ISREG(info.st_mode))
        return failure(ringInvalidUsage, "the timeline {} (RINGCCL_TIMELINE) is no regular file", name_);
    char head[kFirstEvent.size()] = {};
    const ssize_t got = ::pread(fd, head, sizeof head, 0);
    if (got > 0 && kFirstEvent.substr(0, static_cast<size_t>(got)) != std::string_view(head, static_cast<size_t>(got)))
        return failure(ringInvalidUsage,
                       "the file {} (RINGCCL_TIMELINE) is there already and holds no timeline; remove it or name another",
                       name_);

    // The writer's lock makes the look at the file and the beginning of it one step.
    const Lock writer = lock_within(fd, F_WRLCK, kWriter, kPatience);
    if (writer == Lock::held_by_another)
        return failure(ringSystemError,
                       "another process has kept the timeline {} locked for {} ms; is one of its writers stopped?", name_,
                       kPatience.count());
    locks_ = writer == Lock::got;
    const Status begun = begin_if_due();
    if (locks_) {
        lock(fd, F_RDLCK, kUsers);
        lock(fd, F_UNLCK, kWriter);
    }
    return begun;
}

Status TraceFile::begin_if_due() {
    const int fd = file_.get();
    struct stat info {};
    if (::fstat(fd, &info) != 0) return system_failure(errno, "fstat of the timeline {}", name_);
    const bool stale =
        locks_ && info.st_size > 0 && modified(info) + kTick < kProcessBegan && lock(fd, F_WRLCK, kUsers) == Lock::got;
    if (stale && ::ftruncate(fd, 0) != 0) return system_failure(errno, "truncating the timeline {}", name_);
    if (info.st_size > 0 && !stale) return {};
    if (::write(fd, kOpening.data(), kOpening.size()) != static_cast<ssize_t>(kOpening.size()))
        return system_failure(errno, "writing the timeline {}", name_);
    return {};
}

// A part of a line at the end is what a killed process has left.
Status TraceFile::cut_broken_tail() {
    const int fd = file_.get();
    const off_t size = ::lseek(fd, 0, SEEK_END);
    if (size <= 0) return {};
    char last = 0;
    if (::pread(fd, &last, 1, size - 1) != 1 || last == '\n') return {};
    const size_t span = std::min<size_t>(static_cast<size_t>(size), kLongestLine);
    std::vector<char> tail(span);
    const off_t from = size - static_cast<off_t>(span);
    if (::pread(fd, tail.data(), span, from) != static_cast<ssize_t>(span)) return {};
    const auto* end = static_cast<const char*>(::memrchr(tail.data(), '\n', span));
    if (end == nullptr) return {};
    if (::ftruncate(fd, from + (end - tail.data()) + 1) != 0) return system_failure(errno, "mending the timeline {}", name_);
    return {};
}

Result<TraceFile::Written> TraceFile::append(std::string_view lines, milliseconds patience) {
    const int fd = file_.get();
    if (locks_ && lock_within(fd, F_WRLCK, kWriter, patience) != Lock::got) return Written::nothing;
    Status status = locks_ ? cut_broken_tail() : Status();
    const off_t before = ::lseek(fd, 0, SEEK_END);
    while (status.ok() && !lines.empty()) {
        const ssize_t wrote = ::write(fd, lines.data(), lines.size());
        if (wrote > 0) {
            lines.remove_prefix(static_cast<size_t>(wrote));
        } else if (wrote < 0 && errno != EINTR) {
            status = system_failure(errno, "writing the timeline {}", name_);
            if (locks_ && ::ftruncate(fd, before) != 0) status = system_failure(errno, "mending the timeline {}", name_);
        }
    }
    if (locks_) lock(fd, F_UNLCK, kWriter);
    if (!status.ok()) return status;
    return Written::all;
}

}  // namespace ringccl
