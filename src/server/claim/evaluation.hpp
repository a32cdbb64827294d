// How often the executor evaluates a call, and what is done about it.
//
// An expression may be evaluated more than once for one row: UPDATE, MERGE and SELECT ... FOR UPDATE do so when they
// have waited for a row that another transaction has changed (EvalPlanQual), and (f()).* does so for each column. The
// first evaluation claims the event; the second would be told `duplicate`, and the statement do nothing, while the
// event is remembered as done. A function scan in FROM keeps its rows and is not evaluated again, unless it stands in a
// subquery of an expression.
#pragma once

#include "server/claim/call.hpp"
#include "server/table/slot_access.hpp"

namespace idem {

// Whether a call stands where the executor may evaluate it again for the same row.
bool MayBeEvaluatedAgain(FunctionCallInfo fcinfo);

// Whether a claim is refused because of what the statement that makes it has written itself: in a place where that may
// be evaluated again, or by a function that was called from such a place and was called again.
bool RefusedByItself(const EventCall &call, const Found &found, const Decision &decision);

// Raises 21000.
[[noreturn]] void RaiseEvaluatedAgain(const EventCall &call);

}  // namespace idem
