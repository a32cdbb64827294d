// Spans in buckets: each span falls into one that is narrow enough, and quantiles are those of the spans that went in.
#include "core/span_histogram.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace idem {
namespace {

TEST(SpanHistogram, EachBucketBeginsWhereTheOneBeforeEnds) {
    EXPECT_EQ(SpanOfBucket(0), 0);
    for (int bucket = 1; bucket < kSpanBuckets; bucket++) {
        Micros least = SpanOfBucket(bucket);
        EXPECT_EQ(BucketOfSpan(least), bucket);
        EXPECT_EQ(BucketOfSpan(least - 1), bucket - 1);
    }
}

TEST(SpanHistogram, ABucketIsNoWiderThanAThirtySecondOfItsSpan) {
    for (int bucket = kBucketsPerOctave; bucket + 1 < kSpanBuckets; bucket++)
        EXPECT_LE((SpanOfBucket(bucket + 1) - SpanOfBucket(bucket)) * 32, SpanOfBucket(bucket));
}

TEST(SpanHistogram, WhatIsBelowZeroOrTooLongHasABucketToo) {
    EXPECT_EQ(BucketOfSpan(-1), 0);
    EXPECT_EQ(BucketOfSpan(INT64_MIN), 0);
    EXPECT_EQ(BucketOfSpan(INT64_MAX), kSpanBuckets - 1);
    EXPECT_GT(SpanOfBucket(kSpanBuckets - 1), 15 * 365 * 86400 * kSecond);
}

TEST(SpanHistogram, AnEmptyOneHasNoQuantile) {
    auto histogram = std::make_unique<SpanHistogram>();
    EXPECT_EQ(histogram->Total(), 0u);
    EXPECT_EQ(histogram->Quantile(0.99), 0);
    EXPECT_EQ(histogram->QuantileAmong(0.99, 1000), 0);
}

TEST(SpanHistogram, QuantilesAreThoseOfTheSpansWithinABucket) {
    std::mt19937_64 random(1);
    std::lognormal_distribution<double> distribution(15, 3);
    auto histogram = std::make_unique<SpanHistogram>();
    std::vector<Micros> spans(100000);
    for (Micros &span : spans) histogram->Add(span = static_cast<Micros>(distribution(random)));
    std::sort(spans.begin(), spans.end());
    for (double quantile : {0.001, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
        auto exact = static_cast<double>(spans[static_cast<size_t>(std::ceil(quantile * 100000)) - 1]);
        EXPECT_NEAR(static_cast<double>(histogram->Quantile(quantile)) / exact, 1, 0.02) << quantile;
    }
}

TEST(SpanHistogram, WhatIsNotCountedIsZero) {
    auto histogram = std::make_unique<SpanHistogram>();
    for (int i = 0; i < 10; i++) histogram->Add(1000);
    EXPECT_EQ(histogram->QuantileAmong(0.90, 100), 0);
    EXPECT_NEAR(static_cast<double>(histogram->QuantileAmong(0.91, 100)), 1000, 20);
}

TEST(SpanHistogram, TwoMergedAreOneOfAll) {
    std::mt19937_64 random(2);
    auto first = std::make_unique<SpanHistogram>();
    auto second = std::make_unique<SpanHistogram>();
    auto all = std::make_unique<SpanHistogram>();
    for (int i = 0; i < 10000; i++) {
        Micros span = static_cast<Micros>(random() >> 20);
        (i % 3 == 0 ? first : second)->Add(span);
        all->Add(span);
    }
    first->Merge(*second);
    EXPECT_TRUE(std::equal(std::begin(all->counts), std::end(all->counts), std::begin(first->counts)));
}

}  // namespace
}  // namespace idem
