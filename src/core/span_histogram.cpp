#include "core/span_histogram.hpp"

#include <cmath>

namespace idem {
namespace {

Micros MiddleOfBucket(int bucket) {
    if (bucket + 1 == kSpanBuckets) return SpanOfBucket(bucket);
    return SpanOfBucket(bucket) + (SpanOfBucket(bucket + 1) - SpanOfBucket(bucket)) / 2;
}

}  // namespace

void SpanHistogram::Merge(const SpanHistogram &other) {
    for (int bucket = 0; bucket < kSpanBuckets; bucket++) counts[bucket] += other.counts[bucket];
}

uint64_t SpanHistogram::Total() const {
    uint64_t total = 0;
    for (uint64_t count : counts) total += count;
    return total;
}

Micros SpanHistogram::Quantile(double quantile) const { return QuantileAmong(quantile, static_cast<double>(Total())); }

// From the longest down, as what lies above the quantile is little.
Micros SpanHistogram::QuantileAmong(double quantile, double total) const {
    double above = total - std::ceil(quantile * total);  // so many are longer
    for (int bucket = kSpanBuckets - 1; bucket >= 0; bucket--) {
        auto count = static_cast<double>(counts[bucket]);
        if (count > above) return MiddleOfBucket(bucket);
        above -= count;
    }
    return 0;
}

}  // namespace idem
