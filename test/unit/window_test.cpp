// Windows: what an interval is worth as one span, and which spans are refused.
#include "core/window.hpp"

#include <cstdint>

#include <gtest/gtest.h>

namespace idem {
namespace {

constexpr Micros kMost = INT64_MAX;
constexpr Micros kLeast = INT64_MIN;
constexpr auto kMostDays = static_cast<int32_t>(kMost / kDay);  // more days do not fit a span
constexpr Micros kUntouched = -42;

// The span, where one is read.
Micros Read(int32_t months, int32_t days, Micros time) {
    Micros span = kUntouched;
    EXPECT_EQ(ReadWindow(months, days, time, &span), WindowFault::None);
    return span;
}

// The fault, where there is one.
WindowFault FaultOf(int32_t months, int32_t days, Micros time) {
    Micros span = kUntouched;
    WindowFault fault = ReadWindow(months, days, time, &span);
    EXPECT_EQ(span, kUntouched) << "a refused interval must set no span";
    return fault;
}

TEST(Window, CountsADayAsTwentyFourHours) {
    EXPECT_EQ(Read(0, 1, 0), 86400000000);
    EXPECT_EQ(Read(0, 30, 0), 30 * kDay);
    EXPECT_EQ(Read(0, 1, kSecond), kDay + kSecond);
    EXPECT_EQ(Read(0, 0, 15 * 60 * kSecond), 900000000);
}

TEST(Window, AddsPartsOfDifferentSigns) {
    EXPECT_EQ(Read(0, 2, -kDay), kDay);
    EXPECT_EQ(Read(0, -1, kDay + 1), 1);
}

TEST(Window, OfMonthsHasNoLength) {
    EXPECT_EQ(FaultOf(1, 0, 0), WindowFault::HasMonths);
    EXPECT_EQ(FaultOf(-1, 0, 0), WindowFault::HasMonths);
    EXPECT_EQ(FaultOf(12, 30, kSecond), WindowFault::HasMonths);
    EXPECT_EQ(FaultOf(1, -30, 0), WindowFault::HasMonths);
    EXPECT_EQ(FaultOf(INT32_MIN, INT32_MAX, kMost), WindowFault::HasMonths);
}

TEST(Window, MayBeAsShortAsAMicrosecondAndNoShorter) {
    EXPECT_EQ(Read(0, 0, 1), 1);
    EXPECT_EQ(FaultOf(0, 0, 0), WindowFault::NotPositive);
    EXPECT_EQ(FaultOf(0, 0, -1), WindowFault::NotPositive);
    EXPECT_EQ(FaultOf(0, 1, -kDay), WindowFault::NotPositive);
    EXPECT_EQ(FaultOf(0, -1, 0), WindowFault::NotPositive);
    EXPECT_EQ(FaultOf(0, 0, kLeast), WindowFault::NotPositive);
}

TEST(Window, MayBeAsLongAsTenYearsAndNoLonger) {
    EXPECT_EQ(Read(0, 3660, 0), 3660 * kDay);
    EXPECT_EQ(Read(0, 3661, -kDay), 3660 * kDay);
    EXPECT_EQ(FaultOf(0, 3660, 1), WindowFault::TooLong);
    EXPECT_EQ(FaultOf(0, 3662, -kDay), WindowFault::TooLong);
    EXPECT_EQ(FaultOf(0, -1, kMost), WindowFault::TooLong);
    EXPECT_EQ(FaultOf(0, 0, kMost), WindowFault::TooLong);
}

TEST(Window, BeyondTheLimitOfItsTypeIsRefusedByItsSign) {
    EXPECT_EQ(FaultOf(0, kMostDays + 1, 0), WindowFault::TooLong);
    EXPECT_EQ(FaultOf(0, kMostDays, kMost - kMostDays * kDay + 1), WindowFault::TooLong);
    EXPECT_EQ(FaultOf(0, INT32_MAX, 0), WindowFault::TooLong);
    EXPECT_EQ(FaultOf(0, INT32_MAX, -1), WindowFault::TooLong);
    EXPECT_EQ(FaultOf(0, 1, kMost), WindowFault::TooLong);
    EXPECT_EQ(FaultOf(0, -kMostDays - 1, 0), WindowFault::NotPositive);
    EXPECT_EQ(FaultOf(0, -kMostDays, kLeast + kMostDays * kDay - 1), WindowFault::NotPositive);
    EXPECT_EQ(FaultOf(0, INT32_MIN, 0), WindowFault::NotPositive);
    EXPECT_EQ(FaultOf(0, INT32_MIN, 1), WindowFault::NotPositive);
    EXPECT_EQ(FaultOf(0, -1, kLeast), WindowFault::NotPositive);
}

// Points in time are added without looking: in the year 10000 there must still be room for the longest windows.
TEST(Window, NeverBringsAPointInTimeNearInfinity) {
    constexpr Micros kYear10000 = 8000 * 366 * kDay;
    EXPECT_LT(kYear10000, kForever - 3 * kLongestWindow);
}

}  // namespace
}  // namespace idem
