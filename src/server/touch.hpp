// Notices when somebody else than idem writes to a partition: a data-only restore, a logical subscription, a DBA's
// hand.
//
// Such a write may bring events to a slot that idem takes for empty, or that has a filter. So each partition has a
// trigger (BEFORE ROW, ENABLE ALWAYS, so that replication fires it too) which takes the filter away and makes all
// sessions look at the slots anew once the transaction commits. idem's own writes fire no trigger.
#pragma once

#include "server/postgres.hpp"

namespace idem {

// Body of the trigger idem_touch(): tells of the row's partition.
void Touch(Relation partition);

// Gives a partition its trigger, and distrusts what was written without one. Takes ShareRowExclusiveLock on it until
// the transaction ends. The caller is connected to SPI.
void WatchPartition(Oid partition);

// Before a transaction commits or is prepared. A row's trigger fires before the row is there, so a filter that is built
// meanwhile may lack it; and what a savepoint told is forgotten with it. By now all rows are there.
void TellTouchesAgain();

// Once a transaction has ended, or is prepared.
void ForgetTouches();

}  // namespace idem
