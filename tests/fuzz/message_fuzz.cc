// The body of a bootstrap message, whoever sent it.
#include "bootstrap/message.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace ringccl;
    auto read = parse_message({reinterpret_cast<const char*>(data), size});
    if (!read.ok()) {
        fuzz::must(read.status().code() == ringRemoteError, "what is no message is the sender's fault");
        return 0;
    }
    fuzz::must(read.value().is_object(), "a message is a map");
    for (const char* key : {"size", "version", "wait", "code"}) number_in(read.value(), key);
    for (const char* key : {"text", "failure"}) text_in(read.value(), key);
    Status status = status_in(read.value());
    fuzz::must(status.ok() == !read.value().contains("code"), "a code is a failure");
    auto again = parse_message(framed(read.value())->substr(4));
    fuzz::must(again.ok(), "what was read can be sent on");
    return 0;
}
