#include "server/claim/answer.hpp"

#include "server/base/arguments.hpp"
#include "server/base/extension.hpp"

namespace idem {
namespace {

// Whole seconds, as the HTTP header Retry-After wants them; rounded up, or the sender would come too early.
int32 SecondsOf(Micros span) {
    Micros seconds = span / kSecond + (span % kSecond > 0 ? 1 : 0);
    return static_cast<int32>(Min(seconds, PG_INT32_MAX));
}

}  // namespace

void SetClaim(const EventAnswer &answer, Datum *values, bool *nulls) {
    const Extension &extension = InstalledExtension();
    const Decision &decision = answer.decision;
    bool has_record = answer.known && decision.record.first_seen_at != 0;
    bool retry_helps = decision.retry_after != kForever;
    nulls[0] = nulls[1] = false;
    values[0] = BoolGetDatum(decision.outcome == Outcome::Acquired || decision.outcome == Outcome::Bypassed);
    values[1] = ObjectIdGetDatum(extension.outcomes[static_cast<int>(decision.outcome)]);
    values[2] = Int32GetDatum(decision.record.attempt);
    nulls[2] = !has_record || decision.record.attempt == 0;
    values[3] = TimestampTzGetDatum(decision.record.first_seen_at);
    nulls[3] = !has_record;
    if (retry_helps) values[4] = Int32GetDatum(SecondsOf(decision.retry_after));
    nulls[4] = !retry_helps;
    values[5] = PointerGetDatum(answer.result);
    nulls[5] = answer.result == nullptr;
    values[6] = PointerGetDatum(answer.error);
    nulls[6] = answer.error == nullptr;
}

Datum ClaimOf(const EventAnswer &answer) {
    Datum values[kClaimColumns] = {};
    bool nulls[kClaimColumns] = {};
    SetClaim(answer, values, nulls);
    TupleDesc desc = lookup_rowtype_tupdesc(InstalledExtension().claim_type, -1);
    HeapTuple tuple = heap_form_tuple(desc, values, nulls);
    ReleaseTupleDesc(desc);
    return HeapTupleGetDatum(tuple);
}

}  // namespace idem
