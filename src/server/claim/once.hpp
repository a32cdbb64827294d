// Acquire, run a function, settle: all that a handler needs, in one call.
#pragma once

#include "server/claim/call.hpp"

namespace idem {

// Raises 22023 unless the function is action(jsonb) returns jsonb, 42501 unless the user may execute it.
void CheckAction(Oid action);

// Acquires the event; if that succeeds, runs action(payload) in a subtransaction, and commits its result, or rolls the
// subtransaction back and releases the event with its error. What must not be swallowed goes up: a cancelled statement,
// a shutdown, a serialization failure, a deadlock; and every error where the claim was bypassed, as there is nowhere to
// record it. Raises whatever acquiring and settling raise.
EventAnswer PerformOnceOnly(const EventCall &acquire, Oid action);

}  // namespace idem
