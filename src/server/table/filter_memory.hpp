// Filters over the sealed generations of dedup tables, in shared memory which the server reserves as it starts.
//
// A filter says in which slots an event's key can't be, so that a new event needn't be looked for there. It is a guess
// that errs on one side only, and nothing needs it: where there is none, where the library isn't preloaded or
// idem.filter_memory is 0, every slot may hold every key, and the functions that change filters do nothing.
//
// Whoever looks up takes no lock (core/shared_filter.hpp). Everything else takes the lock "idem filters" for
// microseconds, but for clearing and filling a column, which nobody can see. A builder may die at any point of it: what
// it leaves is a column that is not published, and the next one starts with clearing it.
#pragma once

#include "core/filter.hpp"
#include "core/key.hpp"
#include "server/base/postgres.hpp"
#include "server/base/shared_memory.hpp"

namespace idem {

// Where they are: idem.filter_memory, and what describes them.
extern const SharedPart kFilterMemory;

// ----- for look-ups

// The number of the filter of a table of the current database, or -1; it has none if the filter is of other partitions
// than these. The number stays as it is while the table has a filter, so it may be remembered as long as its partitions
// are the same.
int FindFilter(Oid dedup, const Oid *partitions, int slots);

// The slots (bit n = slot n) that may hold the key: all of them unless the table has a filter, and it could be read.
// The number is FindFilter's, at any time in the past. `oldest` is the oldest generation in the ring, as the holder of
// the gate knows it. Takes no lock.
uint64_t SlotsThatMayHold(int filter, Oid dedup, int64_t oldest, const Key &key);

// ----- for whoever builds filters. He keeps others out by ShareUpdateExclusiveLock on the dedup table, whose making is
// committed.

// A column that holds all its keys; in the builder's own memory. It can be published, but not written to: by then
// another may be building.
struct BuiltColumn {
    int filter;
    Oid dedup;
    int slot;
    int64_t generation;
    uint64_t taken_back;  // how often the column had been when it was started
};

// A column being built. Columns share bytes, so whoever writes to one keeps all other builders of the filter out.
struct FilterBuild {
    BuiltColumn column;
    ColumnFiller filler;
};

// Gives the table a filter for so many keys in each generation, or a larger one if those it has is too small by half
// and there is room; a new one has nothing published. False if there is no memory for any.
bool PrepareFilter(Oid dedup, const Oid *partitions, int slots, int64_t keys_per_generation);

// Starts to build the column of a slot that holds a sealed generation, by taking back what is published and clearing
// it; false if the table has no filter with this slot. The turn of the ring that sealed the generation must be
// committed. Raises an error if it is interrupted.
//
// Then every key is to be added that is in the slot, those of open transactions too. Somebody else's rows that come to
// it after the builder has passed by are told by TouchFilter, at the latest before they are committed.
bool StartColumn(Oid dedup, int slot, int64_t generation, FilterBuild *build);

// What the column is to vouch for: the edition of its partition (table/edition.hpp), read after it was started and
// before the scan.
void VouchFor(const FilterBuild &build, uint64_t edition);

void AddToColumn(FilterBuild *build, const Key &key);

// Writes what is not there yet; nothing is to be added after that.
BuiltColumn FinishColumn(FilterBuild *build);

// Publishes the column; false if the slot was touched, retired or built by another since it was started, or the filter
// taken away. Needs no lock on the table: it writes no bits. Sessions that have loaded the table before it had a filter
// learn of it by a relcache invalidation, which the caller sends.
bool PublishColumn(const BuiltColumn &column);

// Takes a column back, if it is published. To be done before its generation is retired.
void UnpublishColumn(Oid dedup, int slot);

bool IsPublished(Oid dedup, int slot, int64_t generation);

// The published column of a slot's generation; nothing if it isn't published. It stays where it is as long as the
// caller keeps other builders out.
std::optional<FilterColumn> PublishedColumn(Oid dedup, int slot, int64_t generation);

// Whether there is memory for filters at all.
bool HasFilterMemory();

// Whether somebody else has written to the slot since its column was last started.
bool IsTouched(Oid dedup, int slot);

// ----- for others

// A session that loads the table has found the partition in this edition: takes the slot's column back, one that is
// being built too, if it was another before. So whoever uses a column has, by the invalidation which every change of an
// edition sends, compared what it vouches for. The number is FindFilter's. Raises no error.
void TellEdition(int filter, Oid dedup, int slot, uint64_t edition);

// Somebody else than idem writes to this partition: takes its column back, one that is being built too. To be called
// before the first row is written, and again when all are, before the transaction commits or is prepared. Raises no
// error.
void TouchFilter(Oid partition);

// Frees the filter of a table of the current database, if it has one. For a table that is being registered: whatever
// had its OID before it must not answer for it. The caller keeps builders out as they do each other.
void DropFilter(Oid dedup);

// Free the filters of the current database's tables, or of the databases, which are gone; exists() is asked about each
// that has a filter, with no lock held, and must look at what is committed when it is asked.
void DropFiltersOfTables(bool (*exists)(Oid dedup));
void DropFiltersOfDatabases(bool (*exists)(Oid database));

// What a table's filter looks like, for a view; false if it has none.
bool DescribeFilter(Oid dedup, size_t *bytes, uint64_t *published);

}  // namespace idem
