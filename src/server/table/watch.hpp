// The trigger by which a partition tells when somebody else than idem writes to it: a data-only restore, a logical
// subscription, a DBA's hand.
//
// Such a write may bring events to a slot that idem takes for empty, or that has a filter. So each partition has the
// trigger idem_touch (BEFORE ROW, ENABLE ALWAYS, so that replication fires it too); what it does is in ring/touch.hpp.
// idem's own writes fire no trigger.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

// Whether the partition has the trigger, in whatever state.
bool HasTouchTrigger(Relation partition);

// Whether every write by others to the partition is told, also by replication.
bool IsWatched(Relation partition);

// Whether the relation has triggers that are not idem's.
bool HasOtherTriggers(Relation relation);

// Gives a partition its trigger, and distrusts what was written without one. Takes ShareRowExclusiveLock on it until
// the transaction ends. The caller is connected to SPI.
void WatchPartition(Oid partition);

// Takes the partition's filter away, and has all sessions look at the slots anew once the transaction commits.
void TellWritten(Oid partition);

}  // namespace idem
