// The host as a device: everything is done within the call, by the calling thread.
#pragma once

#include <vector>

#include "device/device.h"
#include "plan/plan.h"

namespace ringccl {

class HostDevice final : public Device {
public:
    size_t depth() const override { return 1; }
    PeerMemory* peer_memory() override { return nullptr; }
    void join(uint64_t) override {}
    Status check_buffer(const char*, const char*, const void*) override { return {}; }
    Result<std::shared_ptr<Order>> order(void*) override { return std::shared_ptr<Order>(); }
    void reduce(int lane, const Kernel& kernel, void* dst, const void* const* src, int k, size_t count, const Scale& scale,
                bool past_caches) override;
    void copy(int lane, void* dst, const void* src, size_t bytes, bool past_caches) override;
    Ticket mark(int) override { return 0; }
    bool done(int, Ticket) override { return true; }
    bool busy() const override { return false; }
    std::byte* scratch(int lane, size_t bytes, bool landing) override;
    const Status& status() const override { return well_; }
    void drain() override {}

private:
    std::vector<std::byte> scratches_[kLanes][2];
    std::vector<const void*> operands_;
    Status well_;
};

}  // namespace ringccl
