// Events that wait to be worked on: received ones, retries that are due, leases that ran out.
#pragma once

#include "core/state.hpp"
#include "server/base/postgres.hpp"

namespace idem {

// Claims up to `most` events that are due, those due for longest first, of one handler (nullptr = of any), and adds a
// row for each to the result set: handler, event_id, batch, attempt, failures, first_seen_at, payload, error.
//
// The lease of the k-th lasts k times `hot_window` (0 = the policy's), as they are worked on in turn. An event whose
// lease ran out is handed out alone, since it may be what its worker died of. Of an ordering key only the first is
// handed out (claim/ordering.hpp).
//
// Finds them by the index on what is due, which settled events are not in. Skips events that other transactions are at,
// so callers at the same time never get the same one. Raises what acquiring raises.
void ClaimDue(Oid dedup, text *handler, int most, Micros hot_window, ReturnSetInfo *result);

}  // namespace idem
