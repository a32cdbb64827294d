#include "server/claim/evaluation.hpp"

#include "server/claim/running.hpp"

namespace idem {

bool MayBeEvaluatedAgain(FunctionCallInfo fcinfo) {
    if (fcinfo->resultinfo == nullptr || !IsA(fcinfo->resultinfo, ReturnSetInfo)) return true;
    const auto *scan = reinterpret_cast<const ReturnSetInfo *>(fcinfo->resultinfo);
    return scan->econtext->ecxt_estate->es_epq_active != nullptr;
}

bool RefusedByItself(const EventCall &call, const Found &found, const Decision &decision) {
    if (!Claims(call) && call.action != Action::Receive) return false;
    if (!found.ours || decision.outcome == Outcome::Acquired) return false;
    // Commands count up within a transaction; what a function called by this statement has written has a later number.
    if (found.command >= GetActiveSnapshot()->curcid) return call.once;
    return EvaluatedAgainSince(found.command);
}

void RaiseEvaluatedAgain(const EventCall &call) {
    ereport(ERROR,
            (errcode(ERRCODE_CARDINALITY_VIOLATION),
             errmsg("event \"%s\" of handler \"%s\" is asked for a second time by one statement",
                    text_to_cstring(call.event.event_id), text_to_cstring(call.event.handler)),
             errdetail("An expression is evaluated again when the row it belongs to was changed by another transaction "
                       "meanwhile, and once for each row and each column that is taken from it."),
             errhint("Call the function in FROM.")));
}

}  // namespace idem
