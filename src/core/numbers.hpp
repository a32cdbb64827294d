// What is measured of a handler: what its calls were answered, how late redeliveries came, how long work took.
#pragma once

#include <algorithm>

#include "core/span_sample.hpp"
#include "core/state.hpp"

namespace idem {

// In the order of the columns of idem_stat.
enum class Counter : uint8_t {
    Acquired,  // events seen for the first time, received ones too
    Retaken,   // later claims: received before, given back, retry due, lease run out
    Duplicate,
    Busy,
    Backoff,
    Dead,
    Conflict,
    Stale,
    Bypassed,
    Committed,
    Failed,
    GivenBack,
    LeaseLost,  // settlings refused with ID001
    LeftOpen,   // claims whose transaction was refused with ID003
    Late,       // events taken for new that were probably done and forgotten
};
constexpr int kCounterCount = 15;

// All zeros: nothing was seen. It may lie in shared memory, and in a file.
struct Numbers {
    int64_t counts[kCounterCount];
    Micros last_duplicate_at;  // by the server's clock; 0 = never
    Micros last_conflict_at;
    double late_by_chance;     // so many of the late ones are errors of a filter
    Micros oldest_stale;       // the greatest age of an event that was answered stale, by its sender's clock
    SpanHistogram duplicates;  // how old the event was, for each redelivery
    SpanHistogram work;        // from each claim to its settling
    SpanSample sample;         // from first to last delivery, of redelivered events

    int64_t Of(Counter counter) const { return counts[static_cast<int>(counter)]; }
    void Add(Counter counter) { counts[static_cast<int>(counter)]++; }

    void Merge(const Numbers &other) {
        for (int i = 0; i < kCounterCount; i++) counts[i] += other.counts[i];
        last_duplicate_at = std::max(last_duplicate_at, other.last_duplicate_at);
        last_conflict_at = std::max(last_conflict_at, other.last_conflict_at);
        late_by_chance += other.late_by_chance;
        oldest_stale = std::max(oldest_stale, other.oldest_stale);
        duplicates.Merge(other.duplicates);
        work.Merge(other.work);
        sample.Merge(other.sample);
    }
};

}  // namespace idem
