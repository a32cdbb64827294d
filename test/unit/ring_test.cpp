// Rings: how long a generation takes new events, so that every one has expired when its slot is needed again.
#include "core/ring.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "core/window.hpp"

namespace idem {
namespace {

constexpr int kFewestSlots = 2;
constexpr int kMostSlots = 64;
constexpr Micros kColdWindows[] = {kSecond,       kSecond + 1,    3600 * kSecond - 1, kDay,
                                   30 * kDay - 1, 30 * kDay + 61, kLongestWindow};

template <typename Visit>
void ForEachRing(Visit visit) {
    for (int slots = kFewestSlots; slots <= kMostSlots; slots++)
        for (Micros cold_window : kColdWindows) {
            SCOPED_TRACE(testing::Message() << slots << " slots, cold window " << cold_window);
            visit(cold_window, slots, GenerationSpan(cold_window, slots));
        }
}

TEST(GenerationSpan, IsTheColdWindowsPartOfTheSlotsButTwo) {
    EXPECT_EQ(GenerationSpan(30 * kDay, 8), 5 * kDay);
    EXPECT_EQ(GenerationSpan(30 * kDay, 4), 15 * kDay);
    EXPECT_EQ(GenerationSpan(30 * kDay, 3), 30 * kDay);
    EXPECT_EQ(GenerationSpan(30 * kDay, 2), 30 * kDay);
}

// The last event of a generation expires a cold window after the generation is sealed. Its slot is needed again when
// all other slots have had their time.
TEST(GenerationSpan, IsLongEnoughForEveryEventToExpireBeforeItsSlotIsNeededAgain) {
    ForEachRing([](Micros cold_window, int slots, Micros span) { EXPECT_GE((slots - 1) * span, cold_window); });
}

TEST(GenerationSpan, LeavesNearlyAWholeGenerationsTimeToEmptyASlot) {
    ForEachRing([](Micros cold_window, int slots, Micros span) {
        if (slots > 2) {
            EXPECT_GT((slots - 1) * span - cold_window, span - slots);
        }
    });
}

TEST(GenerationSpan, IsNoLongerThanThatNeeds) {
    ForEachRing([](Micros cold_window, int slots, Micros span) {
        EXPECT_GT(span, 0);
        EXPECT_LE(std::max(slots - 2, 1) * span, cold_window);
    });
}

TEST(GenerationSpan, NeverGrowsWithMoreSlots) {
    ForEachRing(
        [](Micros cold_window, int slots, Micros span) { EXPECT_LE(GenerationSpan(cold_window, slots + 1), span); });
}

}  // namespace
}  // namespace idem
