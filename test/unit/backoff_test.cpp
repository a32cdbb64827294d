// Backoff: how long an event that failed waits, for every part of chance and however large base, cap and failures are.
#include "core/backoff.hpp"

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

namespace idem {
namespace {

constexpr double kFractions[] = {0, 0.25, 0.5, 0.999, 1 - 0x1p-53, 1};
constexpr Micros k2To53 = Micros{1} << 53;  // beyond it a double rounds
constexpr Micros kSpans[] = {
    0, 1, 2, 3, 5, 8, 100, 1000, k2To53 - 1, k2To53 + 1, INT64_MAX / 2, INT64_MAX / 2 + 1, INT64_MAX - 1, INT64_MAX};
constexpr int kFailures = 70;  // more than a span has bits

// min(cap, base * 2^(failures - 1)), in numbers that are wide enough.
Micros Longest(Micros base, Micros cap, int failures) {
    __int128 longest = base;
    for (int i = 1; i < failures && longest < cap; i++) longest *= 2;
    return static_cast<Micros>(std::min<__int128>(longest, cap));
}

template <typename Visit>
void ForEachBaseAndCap(Visit visit) {
    for (Micros base : kSpans)
        for (Micros cap : kSpans) visit(base, cap);
}

TEST(Backoff, DoublesTheBaseWithEachFailureUpToTheCap) {
    Backoff backoff = {.base = kSecond, .cap = 10 * kSecond, .fraction = 1};
    EXPECT_EQ(PauseAfter(backoff, 1), kSecond);
    EXPECT_EQ(PauseAfter(backoff, 2), 2 * kSecond);
    EXPECT_EQ(PauseAfter(backoff, 3), 4 * kSecond);
    EXPECT_EQ(PauseAfter(backoff, 4), 8 * kSecond);
    EXPECT_EQ(PauseAfter(backoff, 5), 10 * kSecond);
    EXPECT_EQ(PauseAfter(backoff, 6), 10 * kSecond);
}

TEST(Backoff, HasFullJitter) {
    Backoff backoff = {.base = kSecond, .cap = 3600 * kSecond, .fraction = 0};
    EXPECT_EQ(PauseAfter(backoff, 5), 0);
    backoff.fraction = 0.25;
    EXPECT_EQ(PauseAfter(backoff, 5), 4 * kSecond);
    backoff.fraction = 0.5;
    EXPECT_EQ(PauseAfter(backoff, 5), 8 * kSecond);
}

TEST(Backoff, IsExactlyTheLongestPauseWhereTheFractionIsOne) {
    ForEachBaseAndCap([](Micros base, Micros cap) {
        for (int failures = 1; failures <= kFailures; failures++)
            ASSERT_EQ(PauseAfter({base, cap, 1}, failures), Longest(base, cap, failures))
                << "base " << base << ", cap " << cap << ", failures " << failures;
    });
}

TEST(Backoff, IsNeverLongerThanThatAndNeverNegative) {
    ForEachBaseAndCap([](Micros base, Micros cap) {
        for (double fraction : kFractions)
            for (int failures = 1; failures <= kFailures; failures++) {
                Micros pause = PauseAfter({base, cap, fraction}, failures);
                ASSERT_TRUE(pause >= 0 && pause <= Longest(base, cap, failures))
                    << "base " << base << ", cap " << cap << ", fraction " << fraction << ", failures " << failures
                    << ": " << pause;
            }
    });
}

TEST(Backoff, NeverShrinksWithMoreFailuresNorWithALargerFraction) {
    ForEachBaseAndCap([](Micros base, Micros cap) {
        for (int failures = 1; failures <= kFailures; failures++) {
            Micros last = 0;
            for (double fraction : kFractions) {
                Micros pause = PauseAfter({base, cap, fraction}, failures);
                ASSERT_GE(pause, last) << "base " << base << ", cap " << cap << ", failures " << failures;
                ASSERT_LE(pause, PauseAfter({base, cap, fraction}, failures + 1)) << "base " << base << ", cap " << cap;
                last = pause;
            }
        }
    });
}

TEST(Backoff, IsTheCapsForTheMostFailures) {
    EXPECT_EQ(PauseAfter({1, INT64_MAX, 1}, INT32_MAX), INT64_MAX);
    EXPECT_EQ(PauseAfter({0, INT64_MAX, 1}, INT32_MAX), 0);
    EXPECT_EQ(PauseAfter({INT64_MAX, 3, 1}, INT32_MAX), 3);
}

TEST(Backoff, BeforeAnyFailureIsTheBases) { EXPECT_EQ(PauseAfter({kSecond, 10 * kSecond, 1}, 0), kSecond); }

}  // namespace
}  // namespace idem
