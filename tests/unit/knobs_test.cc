// The table of environment variables: parsing, refusals that say what would be right, sharing, and its printed forms.
#include "base/knobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "knob_pages.h"

namespace ringccl {
namespace {

using testing::HasSubstr;

const Knob& knob(std::string_view name) {
    for (const Knob& each : knobs()) {
        if (name == each.name) return each;
    }
    ADD_FAILURE() << "no knob " << name;
    return knobs()[0];
}

Settings defaults() {
    Settings settings;
    for (const Knob& each : knobs()) EXPECT_TRUE(set_knob(settings, each, each.fallback).ok()) << each.name;
    return settings;
}

// A variable of the environment for the length of a scope.
class Variable {
public:
    Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
    ~Variable() { unsetenv(name_); }

private:
    const char* name_;
};

TEST(Knobs, TableIsSound) {
    std::set<std::string> names;
    for (const Knob& each : knobs()) {
        EXPECT_TRUE(names.insert(each.name).second) << each.name << " twice";
        EXPECT_EQ(std::string(each.name).rfind("RINGCCL_", 0), 0u) << each.name;
        EXPECT_NE(each.number == nullptr, each.text == nullptr) << each.name;
        EXPECT_STRNE(each.help, "") << each.name;
        EXPECT_TRUE(!each.number || each.least < each.most) << each.name;
    }
    defaults();
}

// The values that people and fuzzers try first: accepted, or refused with a text that names variable, value and remedy.
TEST(Knobs, EveryKnobGivesAVerdictOnEveryValue) {
    const Settings before = defaults();
    for (const Knob& each : knobs()) {
        for (const char* value : {"0", "-1", "abc", "1099511627776", "99999999999999999999", "-99999999999999999999", "0x10",
                                  "1e3", " 1", "1 ", "+1", "1.5", "K", "-"}) {
            Settings settings = before;
            Status status = set_knob(settings, each, value);
            if (status.ok()) {
                if (each.number) {
                    EXPECT_GE(settings.*each.number, each.least) << each.name << '=' << value;
                    EXPECT_LE(settings.*each.number, each.most) << each.name << '=' << value;
                }
                continue;
            }
            EXPECT_EQ(status.code(), ringInvalidUsage);
            EXPECT_THAT(status.text(), HasSubstr(std::string(each.name) + "=" + value));
            EXPECT_THAT(status.text(), HasSubstr(knob_range(each)));
            EXPECT_EQ(knob_value(settings, each), knob_value(before, each)) << "a refused value was kept";
        }
    }
}

TEST(Knobs, RefusesWhatIsNotWhollyANumber) {
    Settings settings = defaults();
    for (const char* value : {"", "abc", "5ms", "0x10", "1e3", " 7", "7 ", "+7", "7.0", "7K", "--7"}) {
        EXPECT_FALSE(set_knob(settings, knob("RINGCCL_TIMEOUT_MS"), value).ok()) << '"' << value << '"';
    }
    EXPECT_TRUE(set_knob(settings, knob("RINGCCL_TIMEOUT_MS"), "7").ok());
    EXPECT_EQ(settings.timeout_ms, 7);
}

TEST(Knobs, SizesTakeSuffixes) {
    Settings settings = defaults();
    const Knob& stage = knob("RINGCCL_STAGE_BYTES");
    for (auto [text, bytes] : {std::pair{"64K", int64_t{65536}}, {"2m", int64_t{2} << 20}, {"65537", int64_t{65537}}}) {
        ASSERT_TRUE(set_knob(settings, stage, text).ok()) << text;
        EXPECT_EQ(settings.stage_bytes, bytes);
    }
    // 2^54 GiB is 2^84 bytes: too large, not zero.
    Status status = set_knob(settings, stage, "18014398509481984G");
    EXPECT_THAT(status.text(), HasSubstr("out of range"));
    EXPECT_THAT(status.text(), HasSubstr("nearest is 64M"));
    EXPECT_FALSE(set_knob(settings, stage, "64KB").ok());
}

TEST(Knobs, NamesTheNearestNumber) {
    Settings settings = defaults();
    EXPECT_THAT(set_knob(settings, knob("RINGCCL_CHANNELS"), "9").text(), HasSubstr("nearest is 4"));
    EXPECT_THAT(set_knob(settings, knob("RINGCCL_TIMEOUT_MS"), "0").text(), HasSubstr("nearest is 1"));
    EXPECT_THAT(set_knob(settings, knob("RINGCCL_STAGE_BYTES"), "-99999999999999999999").text(), HasSubstr("nearest is 64K"));
}

TEST(Knobs, ListsOfWords) {
    Settings settings = defaults();
    const Knob& transport = knob("RINGCCL_TRANSPORT");
    EXPECT_TRUE(set_knob(settings, transport, "p2p,tcp").ok());
    EXPECT_EQ(settings.transport, "p2p,tcp");
    EXPECT_FALSE(set_knob(settings, transport, "p2p,").ok());
    EXPECT_FALSE(set_knob(settings, transport, "auto,tcp").ok());
    EXPECT_THAT(set_knob(settings, transport, "p2p,carrier-pigeon").text(), HasSubstr("\"carrier-pigeon\" is not known"));
    EXPECT_FALSE(set_knob(settings, knob("RINGCCL_ALGORITHM"), "ring,tree").ok()) << "not a list";
}

TEST(Knobs, ReadsTheEnvironment) {
    Variable channels("RINGCCL_CHANNELS", "3"), empty("RINGCCL_SOCKETS", "");
    auto settings = settings_from_environment();
    ASSERT_TRUE(settings.ok()) << settings.status().text();
    EXPECT_EQ(settings.value().channels, 3);
    EXPECT_EQ(settings.value().sockets, 1) << "an empty variable counts as not set";

    Variable wrong("RINGCCL_CMA", "yes");
    auto refused = settings_from_environment();
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), ringInvalidUsage);
    EXPECT_THAT(refused.status().text(), HasSubstr("RINGCCL_CMA=yes"));
}

TEST(Knobs, SharedSettingsTravel) {
    Settings root = defaults(), other = defaults();
    root.algorithm = "tree";
    root.slice_bytes = 12345;
    root.channels = 2;
    root.timeout_ms = 1;
    other.timeout_ms = 2;
    ASSERT_TRUE(adopt_shared_settings(other, shared_settings(root)).ok());
    EXPECT_EQ(other.algorithm, "tree");
    EXPECT_EQ(other.slice_bytes, 12345);
    EXPECT_EQ(other.channels, 2);
    EXPECT_EQ(other.timeout_ms, 2) << "each rank's own";
}

TEST(Knobs, DamagedSharedSettingsChangeNothing) {
    const std::string good = shared_settings(defaults());
    for (const std::string& bad :
         {std::string(), good + "RINGCCL_NEW=1\n", good + "RINGCCL_TIMEOUT_MS=5\n", std::string("noise"),
          good.substr(0, good.rfind("RINGCCL")), good + "RINGCCL_CHANNELS=99\n"}) {
        Settings settings = defaults();
        settings.channels = 3;
        EXPECT_FALSE(adopt_shared_settings(settings, bad).ok()) << bad;
        EXPECT_EQ(settings.channels, 3);
    }
}

TEST(Knobs, TerminalListNamesEveryKnobAndMarksChanges) {
    Settings settings = defaults();
    settings.sockets = 4;
    std::string page = knob_list(settings);
    for (const Knob& each : knobs()) EXPECT_THAT(page, HasSubstr(std::string(each.name) + "=" + knob_value(settings, each)));
    EXPECT_THAT(page, HasSubstr("* RINGCCL_SOCKETS=4"));
    EXPECT_THAT(page, testing::Not(HasSubstr("* RINGCCL_CHANNELS")));
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

// If this fails, put the output of `ringccl-info --markdown` into docs/tuning.md.
TEST(Knobs, TuningPageHoldsTheTable) {
    std::ifstream file(RINGCCL_TUNING_PAGE);
    std::stringstream page;
    page << file.rdbuf();
    EXPECT_THAT(page.str(), HasSubstr(knob_markdown()));
}

}  // namespace
}  // namespace ringccl
