// Spans of time, counted in buckets that grow with them: how long work took, how late a duplicate came.
//
// A bucket is at most 1/32 of its span wide, whatever the span, as in an HDR histogram (Tene, hdrhistogram.org); so a
// quantile is told to 3 % out of a fixed and small piece of memory, and two histograms are merged by adding them.
#pragma once

#include <bit>
#include <cstdint>

#include "core/state.hpp"

namespace idem {

constexpr int kBucketsPerOctave = 32;
constexpr int kOctaves = 45;  // the last one ends beyond 17 years
constexpr int kSpanBuckets = kBucketsPerOctave * kOctaves;

// Microseconds up to 31 each have a bucket; then each doubling is cut into 32. What is below zero counts as zero, what
// is too long as the longest.
constexpr int BucketOfSpan(Micros span) {
    if (span < kBucketsPerOctave) return span < 0 ? 0 : static_cast<int>(span);
    int shift = std::bit_width(static_cast<uint64_t>(span)) - std::bit_width(unsigned{kBucketsPerOctave});
    int bucket = shift * kBucketsPerOctave + static_cast<int>(span >> shift);
    return bucket < kSpanBuckets ? bucket : kSpanBuckets - 1;
}

// The least span of a bucket.
constexpr Micros SpanOfBucket(int bucket) {
    if (bucket < kBucketsPerOctave) return bucket;
    int shift = bucket / kBucketsPerOctave - 1;
    return static_cast<Micros>(bucket - shift * kBucketsPerOctave) << shift;
}

// All zeros is an empty one; it may lie in shared memory, and in a file.
struct SpanHistogram {
    uint64_t counts[kSpanBuckets];

    void Add(Micros span) { counts[BucketOfSpan(span)]++; }
    void Merge(const SpanHistogram &other);
    uint64_t Total() const;

    // The middle of the bucket that holds the quantile (0 … 1]; 0 if the histogram is empty.
    Micros Quantile(double quantile) const;

    // The same among `total` spans, of which those that were not counted are zero.
    Micros QuantileAmong(double quantile, double total) const;
};

}  // namespace idem
