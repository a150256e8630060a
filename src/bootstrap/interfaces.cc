#include "bootstrap/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <asio/ip/address.hpp>
#include <asio/ip/network_v4.hpp>
#include <asio/ip/network_v6.hpp>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

namespace ringccl {
namespace {

using Address = asio::ip::address;

Address parsed(const std::string& text) {
    asio::error_code ignored;
    return asio::ip::make_address(text, ignored);
}

bool is_link_local(const Address& address) {
    if (address.is_v6()) return address.to_v6().is_link_local();
    return (address.to_v4().to_uint() >> 16) == 0xA9FE;  // 169.254/16, RFC 3927
}

// RFC 1918, RFC 6598 (shared by carriers, used inside clouds) and RFC 4193.
bool is_private(const Address& address) {
    if (address.is_v6()) return (address.to_v6().to_bytes()[0] & 0xFE) == 0xFC;
    uint32_t bits = address.to_v4().to_uint();
    return (bits >> 24) == 10 || (bits >> 20) == 0xAC1 || (bits >> 16) == 0xC0A8 || (bits >> 22) == (0x64400000u >> 22);
}

// Links inside this host, or through somebody else's machine: their addresses often exist on every host of a cluster alike.
bool is_makeshift(const Interface& interface) {
    static constexpr std::array<std::string_view, 16> prefixes = {"docker", "br-", "virbr",     "veth",  "cni",     "flannel",
                                                                  "cali",   "lxc", "podman",    "vmnet", "vboxnet", "tun",
                                                                  "tap",    "wg",  "tailscale", "ifb"};
    return interface.tunnel || std::any_of(prefixes.begin(), prefixes.end(),
                                           [&](std::string_view prefix) { return interface.name.starts_with(prefix); });
}

int preference(const Interface& interface) {
    Address address = parsed(interface.address);
    if (address.is_loopback()) return 4;
    if (is_link_local(address)) return 3;
    if (is_makeshift(interface)) return 2;
    return is_private(address) ? 1 : 0;
}

std::string listed(const std::vector<Interface>& all) {
    std::string text;
    for (const Interface& one : all) text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", one.name, one.address);
    return text.empty() ? "no address at all" : text;
}

// RINGCCL_INTERFACE, read.
class Filter {
public:
    static Result<Filter> parse(const std::string& text) {
        Filter filter;
        std::string_view rest = text;
        if (rest.starts_with('^')) filter.excludes_ = true, rest.remove_prefix(1);
        if (rest.starts_with('=')) filter.whole_ = true, rest.remove_prefix(1);
        while (!rest.empty()) {
            std::string item(rest.substr(0, rest.find(',')));
            rest.remove_prefix(std::min(rest.size(), item.size() + 1));
            if (item.empty()) continue;
            if (item.find('/') == std::string::npos) {
                filter.names_.push_back(item);
                continue;
            }
            asio::error_code not_v4, not_v6;
            auto v4 = asio::ip::make_network_v4(item, not_v4);
            auto v6 = asio::ip::make_network_v6(item, not_v6);
            if (not_v4 && not_v6)
                return failure(ringInvalidUsage, "RINGCCL_INTERFACE={}: '{}' is not a network such as 10.0.0.0/8 or fd00::/16",
                               text, item);
            if (!not_v4) filter.v4_.push_back(v4);
            if (!not_v6) filter.v6_.push_back(v6);
        }
        if (filter.names_.empty() && filter.v4_.empty() && filter.v6_.empty())
            return failure(ringInvalidUsage, "RINGCCL_INTERFACE={}: names no interface; write e.g. eth0, ^docker or 10.0.0.0/8",
                           text);
        return filter;
    }

    bool allows(const Interface& interface) const { return lists(interface) != excludes_; }
    bool excludes() const { return excludes_; }

private:
    bool lists(const Interface& interface) const {
        for (const std::string& name : names_)
            if (whole_ ? interface.name == name : interface.name.starts_with(name)) return true;
        Address address = parsed(interface.address);
        auto in = [](const auto& network, const auto& bits) {
            using Network = std::decay_t<decltype(network)>;
            return Network(bits, network.prefix_length()).canonical() == network.canonical();
        };
        if (address.is_v4())
            return std::any_of(v4_.begin(), v4_.end(), [&](const auto& net) { return in(net, address.to_v4()); });
        auto unscoped = asio::ip::address_v6(address.to_v6().to_bytes());
        return std::any_of(v6_.begin(), v6_.end(), [&](const auto& net) { return in(net, unscoped); });
    }

    bool excludes_ = false;
    bool whole_ = false;
    std::vector<std::string> names_;
    std::vector<asio::ip::network_v4> v4_;
    std::vector<asio::ip::network_v6> v6_;
};

std::optional<Address> address_of(const sockaddr* raw) {
    if (raw && raw->sa_family == AF_INET) {
        sockaddr_in v4;
        std::memcpy(&v4, raw, sizeof v4);
        return asio::ip::address_v4(ntohl(v4.sin_addr.s_addr));
    }
    if (raw && raw->sa_family == AF_INET6) {
        sockaddr_in6 v6;
        std::memcpy(&v6, raw, sizeof v6);
        asio::ip::address_v6::bytes_type bytes;
        std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
        return asio::ip::address_v6(bytes, v6.sin6_scope_id);
    }
    return std::nullopt;
}

}  // namespace

Result<std::vector<Interface>> host_interfaces() {
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) return system_failure(errno, "getifaddrs");
    std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, ::freeifaddrs);

    std::vector<Interface> all;
    for (ifaddrs* at = first; at; at = at->ifa_next) {
        auto address = address_of(at->ifa_addr);
        if (!address || !(at->ifa_flags & IFF_UP)) continue;
        all.push_back({at->ifa_name, address->to_string(), (at->ifa_flags & IFF_POINTOPOINT) != 0});
    }
    return all;
}

Result<std::vector<Interface>> choose_interfaces(std::vector<Interface> all, const std::string& filter) {
    std::vector<Interface> chosen = all;
    if (!filter.empty()) {
        RINGCCL_ASSIGN(Filter allowed, Filter::parse(filter));
        std::erase_if(chosen, [&](const Interface& one) { return !allowed.allows(one); });
        if (chosen.empty())
            return failure(ringInvalidUsage, "RINGCCL_INTERFACE={} leaves no address of this host, which has {}", filter,
                           listed(all));
        if (!allowed.excludes())
            for (const Interface& one : all)
                if (parsed(one.address).is_loopback() && !allowed.allows(one)) chosen.push_back(one);
    }
    if (chosen.empty()) return failure(ringSystemError, "this host has no network address, not even loopback; is 'lo' up?");
    std::stable_sort(chosen.begin(), chosen.end(),
                     [](const Interface& a, const Interface& b) { return preference(a) < preference(b); });
    return chosen;
}

std::string source_for(const std::string& target, const std::vector<Interface>& allowed, const std::string& filter) {
    Address to = parsed(target);
    if (filter.empty() || to.is_loopback()) return "";
    for (const Interface& one : allowed) {
        Address from = parsed(one.address);
        if (from.is_v4() == to.is_v4() && !from.is_loopback() && is_link_local(from) == is_link_local(to)) return one.address;
    }
    return "";
}

}  // namespace ringccl
