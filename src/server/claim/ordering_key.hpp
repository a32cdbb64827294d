// The events of an ordering key as the index of ordering keys shows them, and the locks on a key: what the order of
// their work (ordering.hpp) and of their coming (succession.hpp) have in common.
#pragma once

#include "core/key.hpp"
#include "server/base/arguments.hpp"
#include "server/base/postgres.hpp"

namespace idem {

// A handler's ordering key.
struct OrderingKey {
    Oid dedup;
    text *handler;
    text *ordering;
};

// An event of a key that waits, as far as its order matters.
struct Waiter {
    OrderingKey of;
    Key key;  // of the event
    TimestampTz first_seen_at;
};

// What a lock on an ordering key is for. They are advisory locks of kinds that no SQL function can take.
enum class LockFor : uint16 {
    Turn = 3,        // whose event may be handed out
    Succession = 4,  // who waits behind whom
};

// Takes the lock until the transaction ends, or not at all: nobody waits for it.
LockAcquireResult TryLockKey(const OrderingKey &key, LockFor what, LOCKMODE mode);
void UnlockKey(const OrderingKey &key, LockFor what, LOCKMODE mode);

// What is looked for. Each look descends the index, however many events wait.
enum class LookFor {
    Blocker,    // of a waiter: an earlier event that is unsettled, or any that is being worked on
    Unsettled,  // any event that is not settled
    Behind,     // the first that was received behind another, and still waits so: key, handler, event_id, batch
    First,      // the first that is unsettled and not being worked on: the columns of idem_due
    NextKey,    // the next ordering key of any handler: handler, ordering
    NextOwn,    // the next ordering key of this handler: handler, ordering
};

// Looks for it as what is committed now, and by this transaction, whatever its isolation level; the rights are those of
// the table's owner. Returns whether there is one; then SPI_tuptable is its row. `skips_dead`: a dead event counts as
// settled. The caller is connected to SPI.
bool LookAtKey(LookFor what, const Waiter &waiter, bool skips_dead);

// Whatever the statistics say: what waits is little among much. To be undone by AtEOXact_GUC.
void PreferIndexes();

}  // namespace idem
