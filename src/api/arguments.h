// Checks of what a caller hands in, in one place, so that every collective says the same about the same mistake.
#pragma once

#include "communicator/communicator.h"

namespace ringccl {

// One call as the user made it.
struct Call {
    const char* name;
    Kind kind;
    const void* send = nullptr;
    void* recv = nullptr;
    size_t count = 0;
    ringDataType_t type = ringInt8;
    int op = -1;  // a ringRedOp_t, or -1 where the kind has none
    int root = 0;
    int peer = -1;
};

// Turns the call into an operation, or says what is wrong with it.
Result<Operation> check(const Call& call, const Communicator& comm);

// The settings for a new communicator: environment, then config.
Result<Settings> settings_for(const char* caller, const ringConfig_t* config, const Settings* inherited = nullptr);

Status check_world(const char* caller, int rank, int size);

}  // namespace ringccl
