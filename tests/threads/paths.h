// The paths and world sizes that the tests of this ring are repeated over.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/environment.h"

namespace ringccl::test {

// One path and one world size: a test parameter that prints as "p2p_memfd_5".
struct Place {
    Path path;
    int size;

    friend void PrintTo(const Place& place, std::ostream* out) { *out << place.path.name << '_' << place.size; }
};

inline std::string place_name(const ::testing::TestParamInfo<Place>& info) {
    return std::string(info.param.path.name) + "_" + std::to_string(info.param.size);
}

// Alone, two, odd, prime, and a power of two; the smallest for each shape a planner tells apart. A rank alone has no links.
inline const Place kPlaces[] = {
    {kPointer, 1}, {kPointer, 2}, {kPointer, 3}, {kPointer, 5}, {kPointer, 7}, {kPointer, 8}, {kMemfd, 2}, {kMemfd, 3},
    {kMemfd, 5},   {kMemfd, 7},   {kMemfd, 8},   {kTcp, 2},     {kTcp, 3},     {kTcp, 5},     {kTcp, 7},   {kTcp, 8},
};

// A test on every place, with the environment of its path.
class OnEveryPath : public ::testing::TestWithParam<Place> {
protected:
    void SetUp() override { GetParam().path.apply(env_); }
    ScopedEnv env_;
};

}  // namespace ringccl::test
