// Events that wait to be worked on: received ones, retries that are due, leases that ran out.
#pragma once

#include "server/base/postgres.hpp"

namespace idem {

// Claims up to `most` events that are due, those due for longest first, of one handler (nullptr = of any), and adds a
// row for each to the result set: handler, event_id, batch, attempt, failures, first_seen_at, payload, error.
//
// Finds them by the index on what is due, which settled events are not in. Skips events that other transactions are at,
// so callers at the same time never get the same one. Raises what acquiring raises.
void ClaimDue(Oid dedup, text *handler, int most, ReturnSetInfo *result);

}  // namespace idem
