// Messages of the bootstrap, whole and broken.
#include "bootstrap/message.h"

#include <gtest/gtest.h>

#include <random>

namespace ringccl {
namespace {

using nlohmann::json;

std::string body(const json& message) {
    return framed(message)->substr(4);
}

TEST(Message, ComesBackAsItWas) {
    json message = {{"size", 8}, {"text", std::string("\0\xff", 2)}, {"texts", {"a", "", "b"}}};
    std::string frame = *framed(message);
    EXPECT_EQ(frame.substr(0, 4), std::string("\0\0\0", 3) + static_cast<char>(frame.size() - 4));
    auto read = parse_message(frame.substr(4));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read.value(), message);
    EXPECT_EQ(number_in(read.value(), "size"), 8);
    EXPECT_EQ(text_in(read.value(), "text").size(), 2u);
    EXPECT_EQ(number_in(read.value(), "text"), 0);  // another kind
    EXPECT_EQ(text_in(read.value(), "none"), "");
}

TEST(Message, CarriesFailures) {
    Status read = status_in(parse_message(body(message_of(failure(ringTimeout, "too late")))).value());
    EXPECT_EQ(read.code(), ringTimeout);
    EXPECT_EQ(read.text(), "too late");
    EXPECT_TRUE(status_in({{"text", "x"}}).ok());
    for (int code : {-1, 0, 7, 1000}) EXPECT_EQ(status_in({{"code", code}, {"failure", "x"}}).code(), ringRemoteError) << code;
    EXPECT_EQ(status_in({{"code", "3"}}).code(), ringRemoteError);
}

TEST(Message, BrokenBytesAreRefused) {
    std::string whole = body({{"text", "abc"}, {"wait", 1000}});
    for (size_t bytes = 0; bytes < whole.size(); ++bytes) EXPECT_FALSE(parse_message(whole.substr(0, bytes)).ok()) << bytes;
    EXPECT_FALSE(parse_message(whole + "x").ok());
    EXPECT_FALSE(parse_message(body(json::array({1, 2}))).ok());                        // not a map
    EXPECT_FALSE(parse_message(std::string(1'000'000, '\x81')).ok());                   // arrays in arrays without end
    EXPECT_FALSE(parse_message("\x9b\xff\xff\xff\xff\xff\xff\xff\xff").ok());           // 2^64 - 1 elements to come
    EXPECT_FALSE(parse_message("\xa1\x61t\x7b\x7f\xff\xff\xff\xff\xff\xff\xff").ok());  // a string of 2^63 - 1 bytes
}

TEST(Message, NoBytesDoHarm) {
    std::mt19937 random(1);
    std::string whole = body({{"texts", {"a", "bc", "d"}}, {"wait", 1000}});
    for (int i = 0; i < 20000; ++i) {
        std::string damaged = whole;
        for (int changes = 1 + static_cast<int>(random() % 4); changes > 0; --changes)
            damaged[random() % damaged.size()] = static_cast<char>(random());
        auto read = parse_message(damaged);
        if (read.ok()) status_in(read.value()).ok();
    }
}

}  // namespace
}  // namespace ringccl
