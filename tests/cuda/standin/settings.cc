#include "settings.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <sstream>

namespace standin {
namespace {

std::string text(const char* name, const char* otherwise = "") {
    const char* value = std::getenv(name);
    return value ? value : otherwise;
}

bool flag(const char* name) {
    std::string value = text(name);
    return !value.empty() && value != "0";
}

std::vector<std::string> list(const std::string& value) {
    std::vector<std::string> items;
    std::stringstream stream(value);
    for (std::string item; std::getline(stream, item, ',');) items.push_back(item);
    return items;
}

// CUDA_VISIBLE_DEVICES as the real runtime reads numbers there: the list ends before the first that does not exist.
std::vector<int> visible(int physical_devices) {
    std::vector<int> devices;
    if (!std::getenv("CUDA_VISIBLE_DEVICES")) {
        for (int device = 0; device < physical_devices; device++) devices.push_back(device);
        return devices;
    }
    for (const std::string& item : list(text("CUDA_VISIBLE_DEVICES"))) {
        char* end = nullptr;
        long device = std::strtol(item.c_str(), &end, 10);
        if (end == item.c_str() || device < 0 || device >= physical_devices) break;
        devices.push_back(static_cast<int>(device));
    }
    return devices;
}

std::string twin_beside_this() {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&settings), &info);
    std::string path = info.dli_fname ? info.dli_fname : "";
    return path.substr(0, path.rfind('/') + 1) + "libringccl_twin.so";
}

Settings read() {
    Settings read;
    read.physical_devices = std::atoi(text("STANDIN_DEVICES", "1").c_str());
    read.devices = visible(read.physical_devices);
    read.peer_access = !flag("STANDIN_NO_PEER");
    read.stream_values = !flag("STANDIN_NO_STREAM_VALUES");
    read.protect = flag("STANDIN_PROTECT");
    read.real_grid = text("STANDIN_GRID", "collapse") == "real";
    if (std::string memory = text("STANDIN_MEMORY"); !memory.empty()) read.memory = std::strtoull(memory.c_str(), nullptr, 10);
    if (std::string queue = text("STANDIN_QUEUE"); !queue.empty()) read.queue = std::strtoull(queue.c_str(), nullptr, 10);
    if (std::string seed = text("STANDIN_SEED"); !seed.empty()) read.seed = std::strtoull(seed.c_str(), nullptr, 10);
    for (const std::string& item : list(text("STANDIN_FAIL"))) {
        size_t colon = item.find(':');
        read.failures[item.substr(0, colon)] = colon == std::string::npos ? 1 : std::atoi(item.c_str() + colon + 1);
    }
    read.failing_launch = std::atoi(text("STANDIN_FAIL_LAUNCH", "0").c_str());
    read.twin = text("RINGCCL_STANDIN_TWIN");
    if (read.twin.empty()) read.twin = twin_beside_this();
    return read;
}

}  // namespace

const Settings& settings() {
    static const Settings& instance = *new Settings(read());  // never destroyed: workers outlive main
    return instance;
}

}  // namespace standin
