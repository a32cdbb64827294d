// What every function on an event asks, and what it is answered.
#pragma once

#include "core/state.hpp"
#include "server/base/arguments.hpp"
#include "server/base/postgres.hpp"

namespace idem {

// What is asked. Datums and texts are the caller's; null pointers = not given.
struct EventCall {
    Oid dedup;
    Identity event;
    Action action;
    int32_t attempt = 0;
    Micros hot_window = 0;              // 0 = the table's
    Micros cold_window = 0;             // 0 = the table's
    int32_t turn = 1;                   // its place among what is worked on in turn: so many hot windows
    bool together = false;              // handed out with others
    bool forgiving = false;             // a fault is an answer, not an error
    bool gives_up = false;              // of a failure: no further try
    bool replaces = false;              // of a receipt
    Micros not_before = 0;              // of a receipt; 0 = at once
    bool due = false;                   // asked by idem_due, not by a delivery
    bool behind = false;                // of a receipt: behind another of its ordering key
    Micros wait = 0;                    // how long to wait for a busy event
    std::optional<Micros> retry_after;  // of a release; nothing = by the policy
    std::optional<Micros> occurred_at;
    bytea *fingerprint = nullptr;
    text *owner = nullptr;
    text *ordering = nullptr;  // of a receipt
    Jsonb *payload = nullptr;
    Jsonb *result = nullptr;
    text *error = nullptr;
    Jsonb *note = nullptr;  // of a resolution
    bool once = false;      // what its own statement has written is no answer to it (claim/evaluation.hpp)
};

// What is answered. Datums live as long as the calling memory context.
struct EventAnswer {
    Decision decision;
    bool known;  // the record in the decision is committed or ours, so it may be told
    bool ours;   // this transaction wrote it
    Jsonb *result;
    text *error;
    Jsonb *payload;                               // of a claim that goes on with what was remembered
    TransactionId holder = InvalidTransactionId;  // busy until this other transaction ends, if any

    bool settled = false;   // this very call settled the event
    Micros claimed_at = 0;  // of the claim that it settled; 0 = it held none
    text *left = nullptr;   // the ordering key in which it blocks nobody any more
};

// Whether the call may end with a claim of the caller's.
inline bool Claims(const EventCall &call) { return call.action == Action::Acquire || call.action == Action::Accept; }

// Whether the call answers only what is final. What is not is waited for, and then an error.
inline bool WantsFinal(const EventCall &call) { return call.action == Action::Accept; }

// Whether the call ends a claim.
inline bool Settles(const EventCall &call) {
    return call.action == Action::Commit || call.action == Action::Fail || call.action == Action::GiveBack;
}

}  // namespace idem
