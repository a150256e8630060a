#include "api/entry.h"

using namespace ringccl;

namespace {

Result<HandleTable<Stream>::Pin> find_stream(ringStream_t stream, const char* caller) {
    auto pin = streams().find(reinterpret_cast<uint64_t>(stream));
    if (!pin)
        return failure(ringInvalidArgument, "{}: {} is not a stream from ringStreamCreate", caller, static_cast<void*>(stream));
    return pin;
}

}  // namespace

ringResult_t ringStreamCreate(ringStream_t* stream) {
    return entry("ringStreamCreate", [&]() -> Status {
        if (stream == nullptr) return failure(ringInvalidArgument, "ringStreamCreate: stream is NULL");
        const uint64_t ticket = streams().add(std::make_shared<Stream>());
        if (ticket == 0) return failure(ringInvalidUsage, "ringStreamCreate: too many streams in one process; destroy some");
        *stream = reinterpret_cast<ringStream_t>(ticket);
        return {};
    });
}

ringResult_t ringStreamSynchronize(ringStream_t stream) {
    return entry("ringStreamSynchronize", [&]() -> Status {
        RINGCCL_ASSIGN(auto pin, find_stream(stream, "ringStreamSynchronize"));
        return pin->synchronize();
    });
}

ringResult_t ringStreamQuery(ringStream_t stream) {
    return entry("ringStreamQuery", [&]() -> Status {
        RINGCCL_ASSIGN(auto pin, find_stream(stream, "ringStreamQuery"));
        return pin->query();
    });
}

ringResult_t ringStreamDestroy(ringStream_t stream) {
    return entry("ringStreamDestroy", [&]() -> Status {
        // Synchronized by the handle, not by the object, so that a second destroy finds nothing.
        std::shared_ptr<Stream> object = streams().remove(reinterpret_cast<uint64_t>(stream));
        if (object == nullptr)
            return failure(ringInvalidArgument, "ringStreamDestroy: {} is not a stream, or was destroyed before",
                           static_cast<void*>(stream));
        return object->synchronize();
    });
}
