// A sample of redelivered events: how long after its first delivery each was last delivered.
//
// That is what windows are chosen by, and no counter can tell it: a redelivery would have to know the one before, and
// nothing is written for a duplicate. So some events are kept, chosen by the hash of their key: whoever sees an event
// knows whether it is one of them. An event moves to a longer span with each redelivery; each octave of spans has a
// share of its own, the part of the hashes that is kept (one over a power of two). When room is short, the share of the
// octave with most events is halved. So the long spans, which are few and on which the windows depend, are kept whole
// where a sample of all events in one share would have next to none of them (bottom-k sampling per stratum: Cohen and
// Kaplan, "Summarizing data using bottom-k sketches", PODC 2007; adaptive thresholds as in Gibbons and Tirthapura,
// "Estimating simple functions on the union of data streams", SPAA 2001).
#pragma once

#include "core/key.hpp"
#include "core/span_histogram.hpp"

namespace idem {

// All zeros is an empty one; it may lie in shared memory, and in a file.
class SpanSample {
public:
    // At most so many events are kept.
    static constexpr int kMostEvents = 3072;

    // The event was redelivered so long after its first delivery.
    void See(const Key &key, Micros span);

    // An event that is in both counts once, with the longer span.
    void Merge(const SpanSample &other);

    // Adds each event kept to its bucket, with the number of events that it stands for.
    void AddTo(SpanHistogram *histogram) const;

    // How many of the events kept have a span of at least this.
    int KeptFrom(Micros span) const;

private:
    static constexpr int kSlots = 4096;  // a power of two
    static_assert(kMostEvents < kSlots);

    // An open-addressed hash table of entries: a hash of 48 bits, then the bucket of its span, plus one. 0 = empty.
    int SlotOf(uint64_t hash) const;
    bool Keeps(uint64_t hash, int octave) const;
    void SeeBucket(uint64_t hash, int bucket);
    void Insert(uint64_t entry);
    void Remove(int slot);
    void HalveLargest();
    void RaiseLevel(int octave, int level);

    uint64_t slots_[kSlots];
    int32_t kept_;
    int32_t kept_of_[kOctaves];
    int32_t levels_[kOctaves];  // the share that is kept of an octave: one over two to this
};

}  // namespace idem
