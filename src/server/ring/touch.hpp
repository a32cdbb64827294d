// Notices when somebody else than idem writes to a partition: a data-only restore, a logical subscription, a DBA's
// hand.
//
// The trigger (table/watch.hpp) fires before a row is written; what it tells has to hold once the row is there.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

// Body of the trigger idem_touch(): tells of the row's partition.
void Touch(Relation partition);

// Before a transaction commits or is prepared. A row's trigger fires before the row is there, so a filter that is built
// meanwhile may lack it; and what a savepoint told is forgotten with it. By now all rows are there.
void TellTouchesAgain();

// Once a transaction has ended, or is prepared.
void ForgetTouches();

}  // namespace idem
