// Groups: calls of one thread that are collected and started together.
#pragma once

#include <memory>
#include <vector>

#include "communicator/communicator.h"

namespace ringccl {

class Group {
public:
    static Group& of_thread();

    bool open() const { return depth_ > 0; }
    void start() { ++depth_; }
    Status end();

    // Carries out the operation now, or with the others at the end of the group. stream null: the caller waits.
    Status submit(const std::shared_ptr<Communicator>& comm, const Operation& operation, std::shared_ptr<Order> stream);
    // The same for making a communicator.
    Status submit(ringComm_t* comm, const ringUniqueId& id, int rank, int size, const Settings& settings);
    // A call of the group was wrong: the end will say so and start nothing.
    void spoil(const Status& why) {
        if (open() && error_.ok()) error_ = why;
    }

private:
    struct Call {
        std::shared_ptr<Communicator> comm;
        Operation operation;
        std::shared_ptr<Order> stream;
    };
    struct Making {
        ringComm_t* comm;
        ringUniqueId id;
        int rank, size;
        Settings settings;
    };

    Status make_all(std::vector<Making>& makings);
    Status call_all(std::vector<Call>& calls);

    int depth_ = 0;
    std::vector<Call> calls_;
    std::vector<Making> makings_;
    Status error_;
};

}  // namespace ringccl
