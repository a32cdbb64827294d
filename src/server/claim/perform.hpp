// One call on one event: look for its row, let the state machine decide, write. Every SQL function that claims or
// settles is one of these.
#pragma once

#include "server/claim/call.hpp"
#include "server/table/event_row.hpp"

namespace idem {

// Carries out the call. Raises ID001, ID002, 22004 and 22023 as the state machine decides, 40001 where the
// transaction's snapshot is too old to decide, 22023 for windows longer than the table's, ID004 where only what is
// final is asked for and nothing is after the wait, 21000 where its own statement has done it already. Holds the gate
// while it looks and writes; keeps RowExclusiveLock on each partition that it writes to.
// Where the store is not available and the policy says `allow`, a claim is answered `bypassed`.
EventAnswer Perform(const EventCall &call);

// The same whatever the policy says: raises where the store is not available.
EventAnswer PerformStored(const EventCall &call);

// Raises 25006 in a read-only transaction, naming the action's SQL function.
void RequireWritable(Action action);

// The row of an event as the active snapshot shows it; nothing if it isn't remembered. Takes no lock that outlives the
// call.
std::optional<EventRow> ReadEvent(Oid dedup, const Key &key);

}  // namespace idem
