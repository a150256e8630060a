#include "bootstrap/unique_id.h"

#include <algorithm>
#include <asio/ip/address.hpp>
#include <cstring>

#include "bootstrap/bootstrap.h"

namespace ringccl {
namespace {

constexpr char kMagic[4] = {'r', 'i', 'n', 'g'};
constexpr uint8_t kVersion = 1;
constexpr size_t kAddressBytes = 78;

// docs/wire.md has this as a table. All members are bytes, so there is no padding and no byte order to think of.
struct Layout {
    char magic[4];
    uint8_t version;
    uint8_t port[2];  // big endian
    uint8_t ports;
    uint8_t call;
    uint8_t addresses;  // how many
    uint8_t secret[32];
    uint8_t packed[kAddressBytes];  // each: 4 or 6, then 4 or 16 bytes
    uint8_t checksum[8];            // first bytes of HMAC-SHA256 over all before, keyed with the secret
};
static_assert(sizeof(Layout) == RINGCCL_UNIQUE_ID_BYTES);

void add_checksum(Layout& layout, const Secret& secret) {
    Digest digest = keyed_digest(secret, {reinterpret_cast<const char*>(&layout), offsetof(Layout, checksum)});
    std::copy_n(digest.begin(), sizeof layout.checksum, layout.checksum);
}

std::string packed_address(const std::string& text) {
    asio::error_code error;
    auto address = asio::ip::make_address(text, error);
    if (error || (address.is_v6() && address.to_v6().is_link_local())) return "";
    if (address.is_v4()) {
        auto bytes = address.to_v4().to_bytes();
        return '\4' + std::string(bytes.begin(), bytes.end());
    }
    auto bytes = address.to_v6().to_bytes();
    return '\6' + std::string(bytes.begin(), bytes.end());
}

}  // namespace

ringUniqueId pack(const Invitation& invitation) {
    Layout layout{};
    std::memcpy(layout.magic, kMagic, sizeof kMagic);
    layout.version = kVersion;
    layout.port[0] = static_cast<uint8_t>(invitation.port >> 8);
    layout.port[1] = static_cast<uint8_t>(invitation.port);
    layout.ports = invitation.ports;
    layout.call = invitation.call;
    std::copy(invitation.secret.begin(), invitation.secret.end(), layout.secret);

    // The first loopback address has its room reserved, and goes last, as it came.
    std::vector<std::string> all;
    std::string loopback;
    for (const std::string& text : invitation.addresses) {
        std::string bytes = packed_address(text);
        asio::error_code ignored;
        if (bytes.empty()) continue;
        if (!asio::ip::make_address(text, ignored).is_loopback())
            all.push_back(bytes);
        else if (loopback.empty())
            loopback = bytes;
    }
    std::string packed;
    auto add = [&](const std::string& bytes, size_t reserve) {
        if (bytes.empty() || packed.size() + bytes.size() + reserve > kAddressBytes) return;
        packed += bytes;
        ++layout.addresses;
    };
    for (const std::string& bytes : all) add(bytes, loopback.size());
    add(loopback, 0);
    std::copy(packed.begin(), packed.end(), layout.packed);

    add_checksum(layout, invitation.secret);
    ringUniqueId id;
    std::memcpy(id.internal, &layout, sizeof layout);
    return id;
}

Result<Invitation> unpack(const ringUniqueId& id) {
    Layout layout;
    std::memcpy(&layout, id.internal, sizeof layout);
    if (std::memcmp(layout.magic, kMagic, sizeof kMagic) != 0)
        return failure(ringInvalidArgument,
                       "this is no unique id; make one with ringGetUniqueId on one rank and copy all {} bytes",
                       RINGCCL_UNIQUE_ID_BYTES);
    if (layout.version != kVersion)
        return failure(ringInvalidArgument,
                       "the unique id has layout {}, this library reads {}; all ranks must load one version", layout.version,
                       kVersion);

    Invitation invitation;
    std::copy_n(layout.secret, sizeof layout.secret, invitation.secret.begin());
    Layout expected = layout;
    add_checksum(expected, invitation.secret);
    bool sound = std::memcmp(expected.checksum, layout.checksum, sizeof layout.checksum) == 0;

    invitation.port = static_cast<uint16_t>(layout.port[0] << 8 | layout.port[1]);
    invitation.ports = layout.ports;
    invitation.call = layout.call;
    size_t at = 0;
    for (int i = 0; sound && i < layout.addresses; ++i) {
        uint8_t kind = at < kAddressBytes ? layout.packed[at++] : 0;
        size_t bytes = kind == 4 ? 4 : 16;
        sound = (kind == 4 || kind == 6) && at + bytes <= kAddressBytes;
        if (!sound) break;
        if (kind == 4) {
            asio::ip::address_v4::bytes_type v4;
            std::copy_n(layout.packed + at, bytes, v4.begin());
            invitation.addresses.push_back(asio::ip::address_v4(v4).to_string());
        } else {
            asio::ip::address_v6::bytes_type v6;
            std::copy_n(layout.packed + at, bytes, v6.begin());
            invitation.addresses.push_back(asio::ip::address_v6(v6).to_string());
        }
        at += bytes;
    }
    if (!sound)
        return failure(ringInvalidArgument, "the unique id is damaged (its checksum is wrong); copy all {} bytes unchanged",
                       RINGCCL_UNIQUE_ID_BYTES);
    return invitation;
}

std::vector<Endpoint> endpoints_of(const Invitation& invitation) {
    std::vector<Endpoint> all;
    for (int i = 0; i < invitation.ports; ++i)
        for (const std::string& address : invitation.addresses)
            all.push_back({address, static_cast<uint16_t>(invitation.port + i)});
    return all;
}

Result<Secret> secret_of(const ringUniqueId& id) {
    RINGCCL_ASSIGN(Invitation invitation, unpack(id));
    return invitation.secret;
}

}  // namespace ringccl
