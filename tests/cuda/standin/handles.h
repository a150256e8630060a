// The handles that are alive. Where the real library would crash on a stale one, the stand-in answers with an error.
#pragma once

#include <map>
#include <memory>
#include <mutex>

namespace standin {

template <typename Object>
class Handles {
public:
    static Handles& instance() {
        static Handles& instance = *new Handles;
        return instance;
    }

    void* add(std::shared_ptr<Object> object) {
        std::scoped_lock lock(mutex_);
        void* handle = object.get();
        objects_[handle] = std::move(object);
        return handle;
    }
    std::shared_ptr<Object> find(const void* handle) const {
        std::scoped_lock lock(mutex_);
        auto entry = objects_.find(handle);
        return entry == objects_.end() ? nullptr : entry->second;
    }
    std::shared_ptr<Object> remove(const void* handle) {
        std::scoped_lock lock(mutex_);
        auto node = objects_.extract(handle);
        return node.empty() ? nullptr : node.mapped();
    }

private:
    mutable std::mutex mutex_;
    std::map<const void*, std::shared_ptr<Object>> objects_;
};

}  // namespace standin
