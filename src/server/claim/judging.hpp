// Between the server and the state machine: a call and the row found for it go in as a request and a sighting, a
// decision comes out as a row to write, as an answer, or as an error.
#pragma once

#include "server/claim/call.hpp"
#include "server/claim/finding.hpp"

namespace idem {

// Raises 22023 for windows longer than the policy's.
void CheckWindows(const Policy &policy, const EventCall &call);

Request RequestOf(const Policy &policy, const EventCall &call);

// `place`: nullptr = the event isn't there.
Sighting SightingOf(const DedupTable &table, const EventCall &call, const Place *place);

// True if the decision's record goes on with the row found, false if the row is of an earlier life or there is none.
bool GoesOn(const Place *place, const Decision &decision);

// The row as the decision wants it; its datums are the call's, or those of the row found.
EventRow RowOf(const DedupTable &table, const EventCall &call, const Place *place, const Decision &decision);

EventAnswer AnswerOf(const EventCall &call, const Place *place, const Decision &decision, bool known, bool wrote);

// Raises ID001, ID002, 22004 or 22023, naming the event.
[[noreturn]] void RaiseFault(Fault fault, const EventCall &call, const Record &record);

// Raises ID004, saying what is not over yet.
[[noreturn]] void RaiseNotFinal(const EventCall &call, const EventAnswer &answer);

// Raises ID002: this transaction has removed the row of its own open claim.
[[noreturn]] void RaiseClaimGone(const EventCall &call);

// Raises 55P03: somebody else has locked the row of a claim of ours (SELECT ... FOR KEY SHARE).
[[noreturn]] void RaiseLocked(const EventCall &call);

// The payload of a row; nullptr if it has none.
Jsonb *PayloadOf(const EventRow &row);

}  // namespace idem
