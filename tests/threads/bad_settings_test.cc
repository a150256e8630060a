// Every knob of the environment with values that someone will try: either it is refused, by name and with what would be right,
// or it works.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/knobs.h"
#include "support/case.h"
#include "support/environment.h"
#include "support/thread_ranks.h"

namespace ringccl::test {
namespace {

using ::testing::HasSubstr;

// Whether the table says that this value is right.
bool right(const Knob& knob, const std::string& value) {
    if (knob.number) {
        char* end = nullptr;
        long long number = std::strtoll(value.c_str(), &end, 10);
        return *end == 0 && number >= knob.least && number <= knob.most;
    }
    // None of the values tried is a word of any knob, nor an interface; a made-up host may be called anything, and so may a
    // directory and a file.
    return knob.text == &Settings::host_id || knob.text == &Settings::record || knob.text == &Settings::timeline ||
           knob.text == &Settings::cuda_module;
}

// In a folder of its own, for what records and timelines leave.
class BadSettings : public ::testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        std::string name = (std::filesystem::temp_directory_path() / "ringccl-XXXXXX").string();
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
        std::filesystem::current_path(folder_);
    }
    void TearDown() override {
        std::filesystem::current_path(before_);
        std::filesystem::remove_all(folder_);
    }

private:
    const std::filesystem::path before_ = std::filesystem::current_path();
    std::filesystem::path folder_;
};

TEST_P(BadSettings, AreRefusedOrWork) {
    const std::string& value = GetParam();
    for (const Knob& knob : knobs()) {
        ScopedEnv env = {{knob.name, value}};
        const ringComm_t untouched = reinterpret_cast<ringComm_t>(uintptr_t(0x77));
        ringComm_t comms[2] = {untouched, untouched};
        ringResult_t result = ringCommInitAll(comms, 2, nullptr);
        std::string text = ringGetLastError(nullptr);
        if (!right(knob, value)) {
            EXPECT_EQ(result, ringInvalidUsage) << knob.name << "=" << value << ": " << text;
            EXPECT_THAT(text, HasSubstr(knob.name));
            EXPECT_THAT(text, HasSubstr(value));
            EXPECT_EQ(comms[0], untouched);
            EXPECT_EQ(comms[1], untouched);
            continue;
        }
        ASSERT_EQ(result, ringSuccess) << knob.name << "=" << value << ": " << text;
        run_threads(2, [&](int rank) {
            Member me{comms[rank], rank, 2};
            for (size_t count : {size_t(1), size_t(100003)})
                if (Verdict v = run_case(me, {.count = count}); !v) return v << " with " << knob.name << "=" << value;
            return worked(ringCommDestroy(me.comm), "ringCommDestroy");
        });
    }
}

INSTANTIATE_TEST_SUITE_P(, BadSettings, ::testing::Values("0", "-1", "abc", "1099511627776"),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                             return info.param == "-1" ? std::string("minus_1") : info.param;
                         });

// The ends of each range work.
TEST(SettingsRange, EndsWork) {
    for (const Knob& knob : knobs()) {
        if (!knob.number || std::string(knob.name).find("TIMEOUT") != std::string::npos) continue;
        for (int64_t value : {knob.least, knob.most}) {
            for (const char* transport : {"p2p", "tcp"}) {
                ScopedEnv env = {{knob.name, std::to_string(value)}};
                SCOPED_TRACE(std::string(knob.name) + "=" + std::to_string(value) + " over " + transport);
                run_ranks({.size = 3, .transport = transport}, [](const Member& me) {
                    for (size_t count : {size_t(5), size_t(70001)})
                        if (Verdict v = run_case(me, {.count = count}); !v) return v;
                    return run_case(me, {.kind = Kind::all_to_all, .count = 30011});
                });
            }
        }
    }
}

TEST(SettingsText, NamesTheRightValues) {
    ScopedEnv env = {{"RINGCCL_ALGORITHM", "rings"}};
    ringUniqueId id;
    EXPECT_EQ(ringGetUniqueId(&id), ringInvalidUsage);
    EXPECT_THAT(ringGetLastError(nullptr), HasSubstr("doubling"));
}

}  // namespace
}  // namespace ringccl::test
