#include "core/shared_filter.hpp"

#include <algorithm>
#include <bit>

namespace idem {

// The release fence puts the odd version before all that is written from here on, by this process and by those which
// get the lock after it, until long after the change: bits that are cleared, and bits of another filter in the same
// place. Whoever reads one of those, and then the version behind an acquire fence, finds it changed.
template <class F>
void SharedFilter::Change(F change) {
    uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    change();
    version_.store(version + 2, std::memory_order_release);
}

bool SharedFilter::IsStill(uint64_t version) const {
    std::atomic_thread_fence(std::memory_order_acquire);
    return version_.load(std::memory_order_relaxed) == version;
}

// Nothing if the filter is not this owner's, or changes meanwhile.
std::optional<SharedFilter::Answer> SharedFilter::Ask(const uint8_t *arena, FilterOwner owner, int64_t oldest,
                                                      const Key &key) const {
    uint64_t version = version_.load(std::memory_order_acquire);
    if (version % 2 != 0) return std::nullopt;

    // Before the bits: whoever sees a column published sees all that was added to it before.
    uint64_t published = published_.load(std::memory_order_acquire);
    // A column published since then can only make it less.
    bool retired = oldest_published_.load(std::memory_order_relaxed) < oldest;
    FilterPlace place = Place();
    // Place and shape must belong together before anything is read there.
    if (Owner() != owner || retired || !IsStill(version)) return std::nullopt;

    uint64_t may_hold = idem::ColumnsThatMayHold(arena + place.offset, place.shape, key, published);
    return IsStill(version) ? std::optional<Answer>({published, may_hold}) : std::nullopt;
}

uint64_t SharedFilter::ColumnsThatMayHold(const uint8_t *arena, FilterOwner owner, int64_t oldest,
                                          const Key &key) const {
    std::optional<Answer> answer = Ask(arena, owner, oldest, key);
    return answer ? answer->may_hold | ~answer->published : kAllColumns;
}

uint64_t SharedFilter::ColumnsThatSeemToHold(const uint8_t *arena, FilterOwner owner, const Key &key) const {
    std::optional<Answer> answer = Ask(arena, owner, INT64_MIN, key);
    return answer ? answer->may_hold : 0;
}

FilterOwner SharedFilter::Owner() const {
    return {database_.load(std::memory_order_relaxed), table_.load(std::memory_order_relaxed)};
}

FilterPlace SharedFilter::Place() const {
    return {offset_.load(std::memory_order_relaxed),
            {positions_.load(std::memory_order_relaxed), columns_.load(std::memory_order_relaxed)}};
}

uint64_t SharedFilter::Published() const { return published_.load(std::memory_order_relaxed); }

bool SharedFilter::IsPublished(int column, int64_t generation) const {
    return (Published() >> column & 1) != 0 && generations_[column] == generation;
}

void SharedFilter::Assign(FilterOwner owner, FilterPlace place) {
    Change([&] {
        SetPublished(0);
        database_.store(owner.database, std::memory_order_relaxed);
        table_.store(owner.table, std::memory_order_relaxed);
        offset_.store(place.offset, std::memory_order_relaxed);
        positions_.store(place.shape.positions, std::memory_order_relaxed);
        columns_.store(place.shape.columns, std::memory_order_relaxed);
    });
}

void SharedFilter::Publish(int column, int64_t generation) {
    generations_[column] = generation;
    SetPublished(Published() | uint64_t{1} << column);
}

void SharedFilter::Unpublish(int column) {
    uint64_t others = Published() & ~(uint64_t{1} << column);
    if (others != Published()) Change([&] { SetPublished(others); });
}

void SharedFilter::SetPublished(uint64_t columns) {
    int64_t oldest = INT64_MAX;
    for (uint64_t rest = columns; rest != 0; rest &= rest - 1)
        oldest = std::min(oldest, generations_[std::countr_zero(rest)]);
    oldest_published_.store(oldest, std::memory_order_relaxed);
    published_.store(columns, std::memory_order_release);
}

}  // namespace idem
