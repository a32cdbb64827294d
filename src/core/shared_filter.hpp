// A filter in memory that other processes ask, without a lock, while one changes it.
//
// A column counts only while it is published. That it is taken back, that its bits are cleared or that the filter moves
// elsewhere can't be one step with what a reader does, so there is a version (a seqlock): it is odd while a change is
// under way, grows with each, and a reader throws away what it read if the version is not what it was before. Then, and
// wherever it can't tell, it answers that any column may hold the key. Setting bits of a column that is not published,
// and publishing it, disturb no reader.
//
// It holds nothing that only one process understands; all zeros is a filter of nobody. Lock-free std::atomics work
// between processes as they do between threads, with which the protocol is tested.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "core/filter.hpp"

namespace idem {

struct FilterOwner {
    uint32_t database;
    uint32_t table;

    bool operator==(const FilterOwner &) const = default;
};

struct FilterPlace {
    uint64_t offset;  // of its bits, from where the arena begins
    FilterShape shape;
};

class SharedFilter {
public:
    // For anybody at any time: which columns may hold the key. All of them if the filter is not this owner's, if it
    // changed meanwhile, or if a generation is published that is older than `oldest`: then the one who retired it was
    // killed before he could take its column back.
    uint64_t ColumnsThatMayHold(const uint8_t *arena, FilterOwner owner, int64_t oldest, const Key &key) const;

    // For anybody at any time, too: which of the published columns seem to hold the key. None where it can't tell.
    uint64_t ColumnsThatSeemToHold(const uint8_t *arena, FilterOwner owner, const Key &key) const;

    // All others are for whoever holds the lock that lets one process at a time change or describe filters.
    FilterOwner Owner() const;
    FilterPlace Place() const;
    uint64_t Published() const;
    bool IsPublished(int column, int64_t generation) const;

    // Gives the filter to an owner, {} = to nobody, with nothing published. Once done, no reader trusts what it reads
    // in the former place, which may be given to another filter.
    void Assign(FilterOwner owner, FilterPlace place);

    // The column's bits are complete: they are all the keys of this generation. Their writer has had the same lock
    // after it wrote them.
    void Publish(int column, int64_t generation);

    // Takes the column back, if it is published. Once done, no reader trusts what it reads of it, so that it may be
    // cleared.
    void Unpublish(int column);

private:
    template <class F>
    void Change(F change);
    bool IsStill(uint64_t version) const;
    struct Answer {
        uint64_t published;
        uint64_t may_hold;  // of these
    };
    std::optional<Answer> Ask(const uint8_t *arena, FilterOwner owner, int64_t oldest, const Key &key) const;
    void SetPublished(uint64_t columns);

    // All that a reader needs, in one cache line.
    std::atomic<uint64_t> version_;
    std::atomic<uint64_t> published_;
    std::atomic<int64_t> oldest_published_;  // the least of the published columns' generations
    std::atomic<uint32_t> database_;
    std::atomic<uint32_t> table_;
    std::atomic<uint64_t> offset_;
    std::atomic<uint64_t> positions_;
    std::atomic<int> columns_;

    int64_t generations_[kMostColumns];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "a lock of the library's would be in one process only");

}  // namespace idem
