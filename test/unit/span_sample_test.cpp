// The sample tells the spans of redelivered events: exactly as long as all of them fit, and closely where they don't,
// above all the long ones. It never holds more than its room, and merging two is as good as having seen all.
#include "core/span_sample.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace idem {
namespace {

Key KeyOf(int n) { return MakeKey("handler", std::to_string(n), {}); }

// What is told of the events in a sample.
SpanHistogram Told(const SpanSample &sample) {
    SpanHistogram histogram = {};
    sample.AddTo(&histogram);
    return histogram;
}

double Exact(std::vector<Micros> spans, double quantile) {
    std::sort(spans.begin(), spans.end());
    return static_cast<double>(spans[static_cast<size_t>(std::ceil(quantile * static_cast<double>(spans.size()))) - 1]);
}

// Events with last deliveries after these spans, and some deliveries before; the first `only` of them go to the sample.
void SeeAll(SpanSample *sample, const std::vector<Micros> &spans, int first = 0) {
    for (size_t i = 0; i < spans.size(); i++) {
        Key key = KeyOf(first + static_cast<int>(i));
        for (int part = static_cast<int>(i % 4); part >= 1; part--) sample->See(key, spans[i] >> (3 * part));
        sample->See(key, spans[i]);
    }
}

// Heavy tails: a Pareto distribution of infinite variance, and retries over seconds for most with days for a few.
std::vector<Micros> Pareto(int count) {
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> uniform(0, 1);
    std::vector<Micros> spans(count);
    for (Micros &span : spans)
        span =
            std::min<Micros>(static_cast<Micros>(1e6 * std::pow(1 - uniform(random), -1 / 1.1)), 400 * 86400 * kSecond);
    return spans;
}

std::vector<Micros> Mixed(int count) {
    std::mt19937_64 random(8);
    std::lognormal_distribution<double> seconds(16, 1);
    std::lognormal_distribution<double> days(25.5, 0.7);
    std::vector<Micros> spans(count);
    for (Micros &span : spans) span = static_cast<Micros>(random() % 50 == 0 ? days(random) : seconds(random));
    return spans;
}

TEST(SpanSample, AsLongAsAllFitTheyAreToldExactly) {
    auto sample = std::make_unique<SpanSample>();
    std::vector<Micros> spans = Pareto(SpanSample::kMostEvents);
    SeeAll(sample.get(), spans);
    SpanHistogram exact = {};
    for (Micros span : spans) exact.Add(span);
    SpanHistogram told = Told(*sample);
    EXPECT_TRUE(std::equal(std::begin(exact.counts), std::end(exact.counts), std::begin(told.counts)));
    EXPECT_EQ(sample->KeptFrom(0), SpanSample::kMostEvents);
}

TEST(SpanSample, AnEventCountsOnceWithItsLongestSpan) {
    auto sample = std::make_unique<SpanSample>();
    for (Micros span : {5 * kSecond, 3600 * kSecond, kSecond, 60 * kSecond}) sample->See(KeyOf(1), span);
    EXPECT_EQ(Told(*sample).Total(), 1u);
    EXPECT_EQ(Told(*sample).counts[BucketOfSpan(3600 * kSecond)], 1u);
}

TEST(SpanSample, QuantilesOfAMillionHeavyTailedEventsAreWithinTenPercent) {
    for (const std::vector<Micros> &spans : {Pareto(1000000), Mixed(1000000)}) {
        auto sample = std::make_unique<SpanSample>();
        SeeAll(sample.get(), spans);
        SpanHistogram told = Told(*sample);
        EXPECT_LE(sample->KeptFrom(0), SpanSample::kMostEvents);
        EXPECT_NEAR(static_cast<double>(told.Total()) / 1e6, 1, 0.05);
        for (double quantile : {0.5, 0.9, 0.99, 0.999})
            EXPECT_NEAR(static_cast<double>(told.Quantile(quantile)) / Exact(spans, quantile), 1, 0.1) << quantile;
        EXPECT_NEAR(static_cast<double>(told.Quantile(1)) / Exact(spans, 1), 1, 0.02);  // the longest is never lost
    }
}

// The deliveries of the demo's trace, at the times that it tells.
TEST(SpanSample, QuantilesOfRecordedTrafficAreWithinTenPercent) {
    std::ifstream trace(TRACE);
    std::regex line(
        R"re("at":([0-9.]+),"source":"([^"]*)","event_id":(null|"[^"]*"),"batch":(null|"[^"]*"),.*"payload":([0-9]+))re");
    std::map<std::string, std::pair<Micros, Micros>> events;  // first and last delivery
    auto sample = std::make_unique<SpanSample>();
    for (std::string text; std::getline(trace, text);) {
        std::smatch delivery;
        ASSERT_TRUE(std::regex_search(text, delivery, line)) << text;
        auto at = static_cast<Micros>(std::stod(delivery[1]) * 1e6);
        // A sender without ids sends the same payload again.
        std::string id = delivery[3] == "null" ? delivery[5].str() : delivery[3].str();
        std::string event = delivery[2].str() + " " + id + " " + delivery[4].str();
        auto [place, is_new] = events.emplace(event, std::pair(at, at));
        place->second.second = std::max(place->second.second, at);
        if (!is_new) sample->See(MakeKey("h", event, {}), at - place->second.first);
    }
    std::vector<Micros> spans;
    for (const auto &[event, times] : events)
        if (times.second > times.first) spans.push_back(times.second - times.first);
    ASSERT_GT(spans.size(), 100u);
    SpanHistogram told = Told(*sample);
    EXPECT_EQ(told.Total(), spans.size());
    for (double quantile : {0.5, 0.9, 0.99, 1.0})
        EXPECT_NEAR(static_cast<double>(told.Quantile(quantile)) / Exact(spans, quantile), 1, 0.1) << quantile;
}

TEST(SpanSample, TwoMergedAreAsGoodAsOneOfAll) {
    std::vector<Micros> spans = Mixed(200000);
    std::vector<Micros> halves[] = {{spans.begin(), spans.begin() + 100000}, {spans.begin() + 100000, spans.end()}};
    auto first = std::make_unique<SpanSample>();
    auto second = std::make_unique<SpanSample>();
    SeeAll(first.get(), halves[0]);
    SeeAll(second.get(), halves[1], 100000);
    first->Merge(*second);
    SpanHistogram told = Told(*first);
    EXPECT_LE(first->KeptFrom(0), SpanSample::kMostEvents);
    for (double quantile : {0.5, 0.9, 0.99})
        EXPECT_NEAR(static_cast<double>(told.Quantile(quantile)) / Exact(spans, quantile), 1, 0.1) << quantile;
}

TEST(SpanSample, MergedWithItselfItIsTheSame) {
    auto sample = std::make_unique<SpanSample>();
    SeeAll(sample.get(), Pareto(50000));
    SpanHistogram before = Told(*sample);
    auto copy = std::make_unique<SpanSample>(*sample);
    sample->Merge(*copy);
    SpanHistogram after = Told(*sample);
    EXPECT_TRUE(std::equal(std::begin(before.counts), std::end(before.counts), std::begin(after.counts)));
}

}  // namespace
}  // namespace idem
