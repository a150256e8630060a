#include "faults/footprint.h"

#include <dirent.h>

#include <fstream>
#include <sstream>

namespace ringccl::faults {
namespace {

std::set<std::string> names_in(const char* folder) {
    std::set<std::string> names;
    DIR* directory = opendir(folder);
    if (!directory) return names;
    while (const dirent* entry = readdir(directory)) {
        const std::string name = entry->d_name;
        if (name != "." && name != "..") names.insert(name);
    }
    closedir(directory);
    return names;
}

}  // namespace

Footprint Footprint::now() {
    Footprint found;
    found.descriptors = static_cast<int>(names_in("/proc/self/fd").size()) - 1;  // without the one that reads them
    found.threads = static_cast<int>(names_in("/proc/self/task").size());
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        // "7f60a0000000-7f60a0021000 rw-s 00000000 00:01 1042   /memfd:name (deleted)"
        const size_t space = line.find(' ');
        if (space != line.npos && line.size() > space + 4 && line[space + 4] == 's') ++found.shared_mappings;
    }
    return found;
}

std::set<std::string> shared_names() {
    std::set<std::string> names;
    for (const std::string& name : names_in("/dev/shm")) names.insert("/dev/shm/" + name);
    std::ifstream segments("/proc/sysvipc/shm");
    std::string line, key, id;
    std::getline(segments, line);  // the headings
    while (std::getline(segments, line))
        if (std::istringstream(line) >> key >> id) names.insert("System V segment " + id);
    return names;
}

}  // namespace ringccl::faults
