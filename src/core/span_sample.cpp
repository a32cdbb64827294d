#include "core/span_sample.hpp"

#include <algorithm>
#include <cstring>

namespace idem {
namespace {

constexpr int kHashBits = 48;
constexpr int kBucketBits = 16;
static_assert(kSpanBuckets < 1 << kBucketBits);

// A key is a hash already.
uint64_t HashOf(const Key &key) {
    uint64_t hash = 0;
    memcpy(&hash, key.bytes, sizeof(hash));
    return hash >> kBucketBits;
}

uint64_t EntryOf(uint64_t hash, int bucket) { return hash << kBucketBits | static_cast<uint64_t>(bucket + 1); }
uint64_t HashOfEntry(uint64_t entry) { return entry >> kBucketBits; }
int BucketOfEntry(uint64_t entry) { return static_cast<int>(entry & ((1 << kBucketBits) - 1)) - 1; }
int OctaveOfEntry(uint64_t entry) { return BucketOfEntry(entry) / kBucketsPerOctave; }

}  // namespace

// The slot of this hash, or the empty one where it belongs.
int SpanSample::SlotOf(uint64_t hash) const {
    int slot = static_cast<int>(hash % kSlots);
    while (slots_[slot] != 0 && HashOfEntry(slots_[slot]) != hash) slot = (slot + 1) % kSlots;
    return slot;
}

// By other bits than those that choose the slot.
bool SpanSample::Keeps(uint64_t hash, int octave) const { return hash >> (kHashBits - levels_[octave]) == 0; }

void SpanSample::Insert(uint64_t entry) {
    slots_[SlotOf(HashOfEntry(entry))] = entry;
    kept_++;
    kept_of_[OctaveOfEntry(entry)]++;
}

// The entries behind it up to the next gap may have been pushed there by it: they are put in again.
void SpanSample::Remove(int slot) {
    kept_--;
    kept_of_[OctaveOfEntry(slots_[slot])]--;
    slots_[slot] = 0;
    for (int next = (slot + 1) % kSlots; slots_[next] != 0; next = (next + 1) % kSlots) {
        uint64_t entry = slots_[next];
        slots_[next] = 0;
        slots_[SlotOf(HashOfEntry(entry))] = entry;
    }
}

void SpanSample::RaiseLevel(int octave, int level) {
    levels_[octave] = level;
    // What is not kept any more leaves; then those that are left find their places anew.
    for (uint64_t &entry : slots_)
        if (entry != 0 && OctaveOfEntry(entry) == octave && !Keeps(HashOfEntry(entry), octave)) {
            kept_--;
            kept_of_[octave]--;
            entry = 0;
        }
    uint64_t left[kSlots];
    memcpy(left, slots_, sizeof(left));
    memset(slots_, 0, sizeof(slots_));
    for (uint64_t entry : left)
        if (entry != 0) slots_[SlotOf(HashOfEntry(entry))] = entry;
}

void SpanSample::HalveLargest() {
    auto octave = static_cast<int>(std::max_element(kept_of_, kept_of_ + kOctaves) - kept_of_);
    RaiseLevel(octave, levels_[octave] + 1);
}

void SpanSample::SeeBucket(uint64_t hash, int bucket) {
    int slot = SlotOf(hash);
    if (slots_[slot] != 0) {
        if (BucketOfEntry(slots_[slot]) >= bucket) return;
        Remove(slot);
    }
    int octave = bucket / kBucketsPerOctave;
    if (!Keeps(hash, octave)) return;
    while (kept_ >= kMostEvents) HalveLargest();
    if (Keeps(hash, octave)) Insert(EntryOf(hash, bucket));
}

void SpanSample::See(const Key &key, Micros span) { SeeBucket(HashOf(key), BucketOfSpan(span)); }

void SpanSample::Merge(const SpanSample &other) {
    for (int octave = 0; octave < kOctaves; octave++)
        if (other.levels_[octave] > levels_[octave]) RaiseLevel(octave, other.levels_[octave]);
    for (uint64_t entry : other.slots_)
        if (entry != 0) SeeBucket(HashOfEntry(entry), BucketOfEntry(entry));
}

void SpanSample::AddTo(SpanHistogram *histogram) const {
    for (uint64_t entry : slots_)
        if (entry != 0) histogram->counts[BucketOfEntry(entry)] += uint64_t{1} << levels_[OctaveOfEntry(entry)];
}

int SpanSample::KeptFrom(Micros span) const {
    int least = BucketOfSpan(span);
    return static_cast<int>(std::count_if(std::begin(slots_), std::end(slots_),
                                          [&](uint64_t entry) { return entry != 0 && BucketOfEntry(entry) >= least; }));
}

}  // namespace idem
