// Windows are advised by what was measured, with a margin; where too little was seen, nothing is.
#include "core/advice.hpp"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "core/window.hpp"

namespace idem {
namespace {

constexpr Micros kMinute = 60 * kSecond;

// A handler that has seen so many events, of which some were redelivered after these spans (evenly).
std::unique_ptr<Numbers> Seen(int events, int redelivered, Micros shortest, Micros longest) {
    auto numbers = std::make_unique<Numbers>();
    numbers->counts[static_cast<int>(Counter::Acquired)] = events;
    for (int i = 0; i < redelivered; i++)
        numbers->sample.See(MakeKey("h", std::to_string(i), {}), shortest + (longest - shortest) * i / redelivered);
    return numbers;
}

double Ratio(Micros a, Micros b) { return static_cast<double>(a) / static_cast<double>(b); }

TEST(Advice, NothingIsAdvisedWhereTooLittleWasSeen) {
    auto numbers = Seen(99, 99, kMinute, kMinute * 2);
    for (int i = 0; i < 99; i++) numbers->work.Add(kSecond);
    Advice advice = AdviseWindows(*numbers, kMinute);
    EXPECT_EQ(advice.hot, 0);
    EXPECT_EQ(advice.retry_span, 0);
    EXPECT_EQ(advice.cold, 0);
    EXPECT_FALSE(advice.redelivery_is_busy);

    numbers = Seen(100, 100, kMinute, kMinute * 2);
    for (int i = 0; i < 100; i++) numbers->work.Add(kSecond);
    advice = AdviseWindows(*numbers, kMinute);
    EXPECT_NE(advice.hot, 0);
    EXPECT_NE(advice.retry_span, 0);
    EXPECT_NE(advice.cold, 0);
}

TEST(Advice, NothingSeenIsNothing) {
    Advice advice = AdviseWindows(*std::make_unique<Numbers>(), kMinute);
    EXPECT_EQ(advice.events, 0u);
    EXPECT_EQ(advice.redelivered.count, 0u);
    EXPECT_EQ(advice.work.p99, 0);
}

TEST(Advice, HotWindowIsTwoToThreeTimesTheSlowestWork) {
    auto numbers = Seen(1000, 0, 0, 0);
    for (int i = 1; i <= 1000; i++) numbers->work.Add(i * kSecond / 100);  // 10 ms … 10 s
    Advice advice = AdviseWindows(*numbers, kMinute);
    EXPECT_NEAR(Ratio(advice.work.p99, 9900 * kSecond / 1000), 1, 0.03);
    EXPECT_GE(Ratio(advice.hot, advice.work.p99), 2);
    EXPECT_LE(Ratio(advice.hot, advice.work.p99), 3);
    EXPECT_EQ(advice.hot % kSecond, 0);
}

TEST(Advice, ColdWindowCoversTwiceTheLongestSpanAndTheOldestStaleEvent) {
    auto numbers = Seen(1000, 500, kMinute, 3 * kDay);
    Advice advice = AdviseWindows(*numbers, kMinute);
    EXPECT_GE(advice.cold, 2 * SpanOfBucket(BucketOfSpan(3 * kDay - kDay / 100)));
    EXPECT_LE(advice.cold, 7 * kDay);
    numbers->counts[static_cast<int>(Counter::Stale)] = 1;
    numbers->oldest_stale = 40 * kDay;
    EXPECT_EQ(AdviseWindows(*numbers, kMinute).cold, 40 * kDay);
}

TEST(Advice, SpansOfAllEventsCountThoseThatWereNotRedelivered) {
    auto numbers = Seen(10000, 200, kMinute, 2 * kMinute);  // 2 %
    Advice advice = AdviseWindows(*numbers, kMinute);
    EXPECT_EQ(advice.all.count, 10000u);
    EXPECT_EQ(advice.all.p90, 0);
    EXPECT_NEAR(Ratio(advice.all.p99, kMinute * 3 / 2), 1, 0.05);
    EXPECT_NEAR(Ratio(advice.redelivered.p99, kMinute * 199 / 100), 1, 0.05);
}

TEST(Advice, P99LiesBetweenItsBounds) {
    auto numbers = Seen(100000, 50000, kSecond, kDay);
    Spans spans = AdviseWindows(*numbers, kMinute).redelivered;
    EXPECT_LE(spans.p99_low, spans.p99);
    EXPECT_GE(spans.p99_high, spans.p99);
    EXPECT_LE(spans.p99_high, spans.longest);
}

TEST(Advice, ALeaseThatOutlivesTheLastRedeliveryIsTold) {
    auto numbers = Seen(1000, 500, kSecond, kMinute);
    EXPECT_TRUE(AdviseWindows(*numbers, 15 * kMinute).redelivery_is_busy);
    EXPECT_FALSE(AdviseWindows(*numbers, 10 * kSecond).redelivery_is_busy);
}

TEST(Advice, NoWindowIsLongerThanAllowed) {
    auto numbers = Seen(1000, 500, kSecond, 15 * 365 * kDay);
    Advice advice = AdviseWindows(*numbers, kMinute);
    EXPECT_EQ(advice.cold, kLongestWindow);
    EXPECT_EQ(advice.retry_span, kLongestWindow);
}

TEST(Advice, FewMoreThanExpectedMayBeChance) {
    EXPECT_FALSE(MoreThanChance(0, 0));
    EXPECT_TRUE(MoreThanChance(1, 0));
    EXPECT_TRUE(MoreThanChance(1, 0.01));
    EXPECT_FALSE(MoreThanChance(1, 0.5));
    EXPECT_FALSE(MoreThanChance(130, 100));
    EXPECT_TRUE(MoreThanChance(131, 100));
    EXPECT_FALSE(MoreThanChance(-1, -1));
}

TEST(Advice, NumbersMergedAreThoseOfBoth) {
    auto first = Seen(300, 150, kMinute, kDay);
    auto second = Seen(200, 150, kMinute, kDay);  // the same redelivered events
    first->last_duplicate_at = 5;
    second->last_duplicate_at = 7;
    first->Merge(*second);
    EXPECT_EQ(first->Of(Counter::Acquired), 500);
    EXPECT_EQ(first->last_duplicate_at, 7);
    EXPECT_EQ(AdviseWindows(*first, kMinute).redelivered.count, 150u);
}

}  // namespace
}  // namespace idem
