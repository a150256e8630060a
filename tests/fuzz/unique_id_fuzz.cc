// The bytes of a ringUniqueId, as they are and with a checksum that fits them: whoever knows the id's secret can make one.
#include <algorithm>
#include <cstring>

#include "bootstrap/bootstrap.h"
#include "bootstrap/unique_id.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace ringccl;
    ringUniqueId id{};
    std::copy_n(data, std::min(size, sizeof id.internal), reinterpret_cast<uint8_t*>(id.internal));
    auto look = [&] {
        auto read = unpack(id);
        if (!read.ok()) return;
        auto endpoints = endpoints_of(read.value());
        fuzz::must(endpoints.size() == read.value().addresses.size() * read.value().ports, "every address with every port");
        fuzz::must(unpack(pack(read.value())).ok(), "what was read can be packed again");
        fuzz::must(secret_of(id).ok(), "both readers agree");
    };
    look();
    Secret secret;
    std::memcpy(secret.data(), id.internal + 10, secret.size());
    Digest digest = keyed_digest(secret, {id.internal, 120});
    std::memcpy(id.internal + 120, digest.data(), 8);
    look();
    return 0;
}
