#include "support/environment.h"

#include <cstdlib>

namespace ringccl::test {

ScopedEnv::~ScopedEnv() {
    for (auto it = before_.rbegin(); it != before_.rend(); ++it) {
        if (it->second) {
            setenv(it->first.c_str(), it->second->c_str(), 1);
        } else {
            unsetenv(it->first.c_str());
        }
    }
}

void ScopedEnv::set(const std::string& name, const std::string& value) {
    const char* old = std::getenv(name.c_str());
    before_.emplace_back(name, old ? std::optional<std::string>(old) : std::nullopt);
    setenv(name.c_str(), value.c_str(), 1);
}

bool quick() {
    const char* value = std::getenv("RINGCCL_TEST_QUICK");
    return value && *value && *value != '0';
}

void Path::apply(ScopedEnv& env) const {
    env.set("RINGCCL_POINTER", pointer ? "1" : "0");
    env.set("RINGCCL_CMA", cma ? "1" : "0");
    env.set("RINGCCL_CMA_MIN_BYTES", "1024");  // low, so that cheap tests reach it
}

}  // namespace ringccl::test
