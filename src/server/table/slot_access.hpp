// Looking into one slot and writing to it: the only code that touches rows.
//
// Look-ups see rows of open transactions (SnapshotDirty on the unique index), as a unique index itself does. Writes go
// through the executor's helpers, so that every index of the partition, being built or not, gets its entry, constraints
// hold, and logical decoding and serializable transactions see the write. No function here waits for anything but a
// page.
#pragma once

#include "core/key.hpp"
#include "server/base/postgres.hpp"
#include "server/table/dedup_table.hpp"

namespace idem {

// A slot opened for one call, with the index of its primary key.
struct OpenedSlot {
    Slot *slot;
    LOCKMODE lock;  // of partition and indexes
    Relation partition;
    Relation key_index;
    bool writable;  // the other indexes are open too
};

// Each opens without waiting. On success they return InvalidOid; else nothing is left open, and the relation returned
// is one that somebody has locked.
Oid TryOpenSlot(Slot *slot, LOCKMODE lock, OpenedSlot *opened);
Oid TryOpenForWriting(OpenedSlot *opened);

// Closes. Where something was written, the locks stay until the transaction ends.
void CloseSlot(const OpenedSlot &opened, bool wrote);

// The row with a key as it is right now, committed or not.
struct Found {
    ItemPointerData at;
    EventRow row;
    bool ours;             // written by the current transaction
    CommandId command;     // which of its commands has written it; only where it is ours
    bool other;            // another open transaction inserted, changes or deletes it
    TransactionId holder;  // that one
};

enum class Look : uint8_t {
    Nothing,
    Row,
    Inserting,  // another transaction inserts it this very moment; wait for `token`, then look again
};

struct LookUp {
    Look look;
    Found found;
    TransactionId inserter;
    uint32 token;
};

// Looks for the key. `thorough`: Nothing is certain even beside an update of the row (it costs a second look); without
// it that is so only in a slot whose rows are never updated in place, or where an insert follows.
LookUp LookForKey(const OpenedSlot &opened, const Key &key, bool thorough);

// Reads the version of a row with the key that this transaction wrote at `at`; nothing if it isn't live any more.
std::optional<Found> ReadOwnRow(const OpenedSlot &opened, const ItemPointerData &at, const Key &key);

// The row with the key that a snapshot shows; nothing if it shows none. Waits for locks as any SELECT does.
std::optional<EventRow> ReadVisibleRow(Slot *slot, const Key &key, Snapshot snapshot);

// Raises 40001 if the transaction's snapshot can't see a row that is to decide, as ON CONFLICT does.
// Does nothing under READ COMMITTED.
void CheckVisible(const OpenedSlot &opened, const ItemPointerData &at);

// Has a serializable transaction read that the key is not there, as a SELECT would.
void ReadAbsence(const OpenedSlot &opened, const Key &key);

enum class Written : uint8_t {
    Done,
    Conflict,  // somebody else has just written this key: look again
    Held,      // another transaction holds or changes the row
};

// Inserts, unless the key is there; sets `at` to where the row stands. The slot must be open for writing.
Written InsertRow(const OpenedSlot &opened, EventRow *row, ItemPointerData *at);

// Writes `row` over the one found. The slot must be open for writing.
Written UpdateRow(const OpenedSlot &opened, const Found &found, EventRow *row, ItemPointerData *at);

// Deletes the row found.
Written DeleteRow(const OpenedSlot &opened, const Found &found);

}  // namespace idem
