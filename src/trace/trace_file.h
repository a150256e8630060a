// The file of a timeline, to which many processes append: Trace Event Format in its array form, whose closing bracket is
// optional. One event a line.
//
// Whoever finds the file empty writes the opening bracket. A file that was written last before this process began, and that
// nobody has open, is from an earlier job and is begun anew; so one run's timeline never hides in another's. In all other cases
// events are appended. A process that is killed while it writes may leave a part of a line, which the next to write cuts off,
// so the file can be read as long as anybody lives. What is no timeline is never overwritten.
//
// Who has the file open, and who writes, is told by locks on two bytes far beyond its end. Where the file system has no locks,
// nothing is cut and nothing begun anew.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"

namespace ringccl {

class TraceFile {
public:
    // ringSystemError: it cannot be opened; ringInvalidUsage: it holds something else.
    static Result<TraceFile> open(const std::string& name);

    enum class Written { all, nothing };
    // Whole lines, each "{...},\n". `nothing`: another process has kept the file locked all the time; try again later.
    // ringSystemError: the file is as before, and will not take more.
    Result<Written> append(std::string_view lines, std::chrono::milliseconds patience);

private:
    TraceFile(std::string name, Fd file) : name_(std::move(name)), file_(std::move(file)) {}
    Status begin();
    Status begin_if_due();
    Status cut_broken_tail();

    std::string name_;
    Fd file_;
    bool locks_ = true;
};

}  // namespace ringccl
