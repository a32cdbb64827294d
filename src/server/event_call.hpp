// One call on one event: look for its row, let the state machine decide, write. Every SQL function that claims or
// settles is one of these.
#pragma once

#include "core/state.hpp"
#include "server/arguments.hpp"
#include "server/dedup_table.hpp"
#include "server/postgres.hpp"

namespace idem {

// What is asked. Datums and texts are the caller's; null pointers = not given.
struct EventCall {
    Oid dedup;
    Identity event;
    Action action;
    int32_t attempt = 0;
    Micros hot_window = 0;              // 0 = the table's
    Micros cold_window = 0;             // 0 = the table's
    Micros wait = 0;                    // how long to wait for a busy event
    std::optional<Micros> retry_after;  // of a release; nothing = by the policy
    std::optional<Micros> occurred_at;
    bytea *fingerprint = nullptr;
    text *owner = nullptr;
    Jsonb *payload = nullptr;
    Jsonb *result = nullptr;
    text *error = nullptr;
    Jsonb *note = nullptr;  // of a resolution
};

// What is answered. Datums live as long as the calling memory context.
struct EventAnswer {
    Decision decision;
    bool known;  // the record in the decision is committed or ours, so it may be told
    bool ours;   // this transaction wrote it
    Jsonb *result;
    text *error;
    Jsonb *payload;  // of a claim that goes on with what was remembered
};

// Carries out the call. Raises ID001, ID002, 22004 and 22023 as the state machine decides, 40001 where the
// transaction's snapshot is too old to decide, 22023 for windows longer than the table's. Holds the gate while it looks
// and writes; keeps RowExclusiveLock on each partition that it writes to.
// Where the store is not available and the policy says `allow`, a claim is answered `bypassed`.
EventAnswer Perform(const EventCall &call);

// The same whatever the policy says: raises where the store is not available.
EventAnswer PerformStored(const EventCall &call);

// Raises 22023 for windows longer than the policy's.
void CheckWindows(const Policy &policy, const EventCall &call);

// Raises 25006 in a read-only transaction, naming the action's SQL function.
void RequireWritable(Action action);

// The row of an event as the active snapshot shows it; nothing if it isn't remembered. Takes no lock that outlives the
// call.
std::optional<EventRow> ReadEvent(Oid dedup, const Key &key);

}  // namespace idem
