#include "core/advice.hpp"

#include <cmath>

#include "core/window.hpp"

namespace idem {
namespace {

// The next whole second, minute, hour or day, so that a window can be read: at most a hundredth or so longer.
Micros RoundUp(Micros span) {
    constexpr Micros kMinute = 60 * kSecond;
    constexpr Micros kHour = 60 * kMinute;
    Micros unit = span < 2 * kMinute ? kSecond : span < 2 * kHour ? kMinute : span < 4 * kDay ? kHour : kDay;
    return std::clamp((span + unit - 1) / unit * unit, kSecond, kLongestWindow);
}

Micros Scaled(Micros span, double factor) {
    return static_cast<Micros>(std::min(static_cast<double>(span) * factor, static_cast<double>(kLongestWindow)));
}

// Among `total` spans, of which those that the histogram lacks are zero. `kept(span)` tells how many observations the
// histogram has from there up: the fewer, the less sure the quantile.
template <class F>
Spans SpansOf(const SpanHistogram &histogram, double total, F kept) {
    Spans spans = {};
    spans.count = static_cast<uint64_t>(total);
    if (total < 1) return spans;
    spans.p50 = histogram.QuantileAmong(0.50, total);
    spans.p90 = histogram.QuantileAmong(0.90, total);
    spans.p99 = histogram.QuantileAmong(0.99, total);
    spans.longest = histogram.QuantileAmong(1.00, total);
    double beyond = std::max(1, kept(spans.p99));
    double error = std::min(2 / std::sqrt(beyond), 0.99);
    spans.p99_low = histogram.QuantileAmong(1 - 0.01 * (1 + error), total);
    spans.p99_high = histogram.QuantileAmong(1 - 0.01 * (1 - error), total);
    return spans;
}

int CountedFrom(const SpanHistogram &histogram, Micros span) {
    uint64_t counted = 0;
    for (int bucket = BucketOfSpan(span); bucket < kSpanBuckets; bucket++) counted += histogram.counts[bucket];
    return static_cast<int>(std::min<uint64_t>(counted, INT32_MAX));
}

}  // namespace

bool MoreThanChance(double seen, double by_chance) {
    return seen >= 1 && seen > by_chance + 3 * std::sqrt(std::max(by_chance, 0.0));
}

Advice AdviseWindows(const Numbers &numbers, Micros hot_window) {
    Advice advice = {};
    advice.events = static_cast<uint64_t>(std::max<int64_t>(numbers.Of(Counter::Acquired), 0));

    SpanHistogram last = {};
    numbers.sample.AddTo(&last);
    auto redelivered = static_cast<double>(last.Total());
    auto kept = [&](Micros span) { return numbers.sample.KeptFrom(span); };
    advice.redelivered = SpansOf(last, redelivered, kept);
    // Events that were first seen before counting began are redelivered ones too.
    advice.all = SpansOf(last, std::max(redelivered, static_cast<double>(advice.events)), kept);
    advice.work = SpansOf(numbers.work, static_cast<double>(numbers.work.Total()),
                          [&](Micros span) { return CountedFrom(numbers.work, span); });

    if (advice.work.count >= kFewestForAdvice) advice.hot = RoundUp(Scaled(advice.work.p99, kMargin));
    if (advice.redelivered.count >= kFewestForAdvice) {
        advice.retry_span = RoundUp(Scaled(advice.redelivered.p99, kMargin));
        Micros oldest_late = numbers.Of(Counter::Stale) > 0 ? numbers.oldest_stale : 0;
        advice.cold = RoundUp(std::max(Scaled(advice.redelivered.longest, 2), oldest_late));
        advice.redelivery_is_busy = std::max(hot_window, advice.hot) >= advice.redelivered.p99;
    }
    return advice;
}

}  // namespace idem
