// RINGCCL_INTERFACE and the order of addresses, on made-up hosts.
#include "bootstrap/interfaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringccl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<Interface> kHost = {
    {"lo", "127.0.0.1"},      {"docker0", "172.17.0.1"},  {"eth0", "10.1.0.5"},     {"eth1", "192.0.2.5"},
    {"eth10", "192.168.7.5"}, {"tun0", "10.8.0.2", true}, {"eth2", "169.254.3.4"},  {"lo", "::1"},
    {"eth0", "fd00:1::5"},    {"eth1", "2001:db8::5"},    {"eth0", "fe80::5%eth0"}, {"vethab12", "10.2.0.1"},
};

std::vector<std::string> chosen(const std::string& filter) {
    auto result = choose_interfaces(kHost, filter);
    EXPECT_TRUE(result.ok()) << result.status().text();
    std::vector<std::string> addresses;
    if (result.ok())
        for (const Interface& one : result.value()) addresses.push_back(one.address);
    return addresses;
}

TEST(Interfaces, GlobalThenPrivateThenMakeshiftThenLinkLocalThenLoopback) {
    EXPECT_THAT(chosen(""), ElementsAre("192.0.2.5", "2001:db8::5", "10.1.0.5", "192.168.7.5", "fd00:1::5", "172.17.0.1",
                                        "10.8.0.2", "10.2.0.1", "169.254.3.4", "fe80::5%eth0", "127.0.0.1", "::1"));
}

TEST(Interfaces, NamesArePrefixesUnlessWhole) {
    EXPECT_THAT(chosen("eth1"), ElementsAre("192.0.2.5", "2001:db8::5", "192.168.7.5", "127.0.0.1", "::1"));
    EXPECT_THAT(chosen("=eth1"), ElementsAre("192.0.2.5", "2001:db8::5", "127.0.0.1", "::1"));
    EXPECT_THAT(chosen("=eth2,docker0"), ElementsAre("172.17.0.1", "169.254.3.4", "127.0.0.1", "::1"));
}

TEST(Interfaces, ACaretExcludes) {
    EXPECT_THAT(chosen("^eth,docker,tun"), ElementsAre("10.2.0.1", "127.0.0.1", "::1"));
    EXPECT_THAT(chosen("^=eth1,docker0,lo,tun0,vethab12"),
                ElementsAre("10.1.0.5", "192.168.7.5", "fd00:1::5", "169.254.3.4", "fe80::5%eth0"));
}

TEST(Interfaces, NetworksMatchAddresses) {
    EXPECT_THAT(chosen("10.0.0.0/8"), ElementsAre("10.1.0.5", "10.8.0.2", "10.2.0.1", "127.0.0.1", "::1"));
    EXPECT_THAT(chosen("192.0.2.5/32,fd00::/16"), ElementsAre("192.0.2.5", "fd00:1::5", "127.0.0.1", "::1"));
    EXPECT_THAT(chosen("fe80::/10"), ElementsAre("fe80::5%eth0", "127.0.0.1", "::1"));
    EXPECT_THAT(chosen("127.0.0.0/8"), ElementsAre("127.0.0.1", "::1"));
}

TEST(Interfaces, AFilterThatLeavesNothingSaysWhatThereIs) {
    auto result = choose_interfaces(kHost, "ib0");
    EXPECT_EQ(result.status().code(), ringInvalidUsage);
    EXPECT_THAT(result.status().text(), HasSubstr("eth0 (10.1.0.5)"));
    for (const char* bad : {"10.0.0.0/33", "10.0.0/8", "eth0,fd00::/200", "^", "=", ",", "^=,"})
        EXPECT_EQ(choose_interfaces(kHost, bad).status().code(), ringInvalidUsage) << bad;
    EXPECT_EQ(choose_interfaces({}, "").status().code(), ringSystemError);
}

TEST(Interfaces, WithoutANetworkThereIsLoopback) {
    auto result = choose_interfaces({{"lo", "127.0.0.1"}}, "");
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result.value().size(), 1u);
}

TEST(Interfaces, TheSourceIsBoundOnlyWhereAnInterfaceWasChosen) {
    auto allowed = choose_interfaces(kHost, "=eth0,lo").take();
    EXPECT_EQ(source_for("10.9.9.9", allowed, "=eth0,lo"), "10.1.0.5");
    EXPECT_EQ(source_for("2001:db8::9", allowed, "=eth0,lo"), "fd00:1::5");
    EXPECT_EQ(source_for("fe80::9%eth0", allowed, "=eth0,lo"), "fe80::5%eth0");
    EXPECT_EQ(source_for("127.0.0.1", allowed, "=eth0,lo"), "");
    EXPECT_EQ(source_for("10.9.9.9", allowed, ""), "");
}

TEST(Interfaces, ThisHostHasAtLeastLoopback) {
    auto all = host_interfaces();
    ASSERT_TRUE(all.ok()) << all.status().text();
    EXPECT_TRUE(choose_interfaces(all.take(), "").ok());
}

}  // namespace
}  // namespace ringccl
