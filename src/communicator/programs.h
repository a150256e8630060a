// The programs that a communicator has made, by shape.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "communicator/fabric.h"
#include "engine/program.h"

namespace ringccl {

class Programs {
public:
    // `wiring` connects links that a program is the first to need.
    Programs(const Fabric& fabric, Device& device, Wiring wiring, const Settings& settings);

    // The program for an operation, moved by `shift` lanes; chosen, planned and connected if it is the first of its shape.
    // `record`: the operation's in the flight recorder.
    Result<Program*> find_or_make(const Operation& operation, uint64_t record, int shift);

    // Before a batch: forgets everything if there is too much of it. Programs found before are gone then.
    void trim();

private:
    struct Key {
        Shape shape;
        int shift;
        int peer;
        bool operator==(const Key&) const = default;
    };
    struct KeyHash {
        size_t operator()(const Key& key) const;
    };

    const Fabric& fabric_;
    Device& device_;
    Wiring wiring_;
    const Settings& settings_;
    const Sizes sizes_;
    std::unordered_map<Key, std::unique_ptr<Program>, KeyHash> made_;
    Key last_key_{};  // most calls are like the one before
    Program* last_ = nullptr;
};

}  // namespace ringccl
