// What a process holds that a library could leave behind.
#pragma once

#include <map>
#include <string>

namespace ringccl::test {

struct Holdings {
    std::map<std::string, int> descriptors;  // how many lead where: "socket:", "anon_inode:", "/memfd:ringccl-stage (deleted)"
    int threads = 0;
    int memory_files = 0;  // mappings of a memfd, or of anything under /dev/shm

    static Holdings now();
    // What is here and was not before, in words; empty if nothing.
    std::string beyond(const Holdings& before) const;
};

// Waits until the process holds no more than `before`, at most `ms`: threads that have been told to end need a moment. What is
// left, in words.
std::string left_behind(const Holdings& before, int ms);

}  // namespace ringccl::test
