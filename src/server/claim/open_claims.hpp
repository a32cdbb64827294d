// The claims which the current transaction holds in transaction mode and has not settled.
//
// Their rows say "done" from the start, as nobody else can see them before COMMIT. So it takes this list to tell an
// open claim from a settled one within the transaction, and to refuse a COMMIT or PREPARE that would make an unsettled
// claim done. Savepoints count: rolling one back forgets the claims made in it and reopens those settled in it.
#pragma once

#include "core/key.hpp"
#include "server/base/postgres.hpp"
#include "server/table/event_row.hpp"

namespace idem {

struct OpenClaim {
    Oid dedup;
    Key key;
    int64_t generation;  // where its row stands
    ItemPointerData at;
    uint64_t loaded;  // the table's when the row was written: a newer one may have its rows elsewhere, or none
    Record record;
    Jsonb *payload;  // kept for a release as failed; null = none
};

// The transaction's open claim on an event; nullptr if it has none.
const OpenClaim *FindOpenClaim(Oid dedup, const Key &key);

// Whether the transaction has any, settled in a savepoint or open.
bool HasOpenClaims();

// Remembers a claim, which takes the place of one on the same event whose row is gone; with copies of what it points
// to; handler and event_id name it in ID003.
void AddOpenClaim(const OpenClaim &claim, const text *handler, const text *event_id);

// The claim is settled, unless the current savepoint is rolled back.
void SettleOpenClaim(const OpenClaim *claim);

// Before a transaction commits or is prepared. Raises ID003 if it leaves a claim open, but on a table that it has
// dropped.
void RefuseUnsettledClaims();

// Once a transaction has ended, or is prepared.
void ForgetClaims();

// To be called once, when the library is loaded.
void WatchSavepoints();

}  // namespace idem
