// The SQL functions for handlers that fail and what is left of them: due events, dead letters, one-call handlers.

#include "core/window.hpp"
#include "server/base/arguments.hpp"
#include "server/base/postgres.hpp"
#include "server/base/privileges.hpp"
#include "server/base/statement.hpp"
#include "server/claim/answer.hpp"
#include "server/claim/call_arguments.hpp"
#include "server/claim/due.hpp"
#include "server/claim/evaluation.hpp"
#include "server/claim/once.hpp"
#include "server/claim/perform.hpp"
#include "server/table/dedup_table.hpp"
#include "server/table/event_row.hpp"

using namespace idem;

namespace {

constexpr int kMostDue = 100000;
constexpr int kMostOrderingBytes = 255;

// When an event may be claimed; 0 = at once.
Micros NotBeforeArgument(FunctionCallInfo fcinfo, int number) {
    if (PG_ARGISNULL(number)) return 0;
    TimestampTz at = PG_GETARG_TIMESTAMPTZ(number);
    if (TIMESTAMP_NOT_FINITE(at) || at > GetCurrentTimestamp() + kLongestWindow)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("not_before is not within the next %d days", static_cast<int>(kLongestWindow / kDay))));
    return at;
}

// {"note": …, "resolved_by": the user's name}
Jsonb *NoteOf(const text *note) {
    StringInfoData json;
    initStringInfo(&json);
    appendStringInfoString(&json, "{\"note\": ");
    escape_json(&json, text_to_cstring(note));
    appendStringInfoString(&json, ", \"resolved_by\": ");
    escape_json(&json, GetUserNameFromId(GetUserId(), false));
    appendStringInfoChar(&json, '}');
    return DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(json.data)));
}

ReturnSetInfo *StartResult(FunctionCallInfo fcinfo) {
    InitMaterializedSRF(fcinfo, 0);
    return reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
}

// All columns, in the order of the SQL type.
const char *EventColumns() {
    StringInfoData list;
    initStringInfo(&list);
    for (int i = 0; i < kColumnCount; i++) appendStringInfo(&list, "%s%s", i == 0 ? "" : ", ", kColumnNames[i]);
    return list.data;
}

void PutDeadLetters(Oid dedup, text *handler, ReturnSetInfo *result) {
    const char *query = psprintf(
        "SELECT %s FROM %s WHERE claimable_at OPERATOR(pg_catalog.=) 'infinity' "
        "AND expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp() "
        "AND ($1 IS NULL OR handler OPERATOR(pg_catalog.=) $1) ORDER BY first_seen_at",
        EventColumns(), QualifiedNameOf(dedup));
    Oid types[] = {TEXTOID};
    Datum values[] = {PointerGetDatum(handler)};
    const char nulls[] = {handler == nullptr ? 'n' : ' ', '\0'};
    SPI_connect();
    int done = SPI_execute_with_args(query, 1, types, values, nulls, true, 0);
    if (done != SPI_OK_SELECT) elog(ERROR, "could not look for dead letters: %s", SPI_result_code_string(done));
    for (uint64 i = 0; i < SPI_tuptable->numvals; i++) tuplestore_puttuple(result->setResult, SPI_tuptable->vals[i]);
    SPI_finish();
}

}  // namespace

extern "C" {

PG_FUNCTION_INFO_V1(idem_receive);
PG_FUNCTION_INFO_V1(idem_once);
PG_FUNCTION_INFO_V1(idem_due);
PG_FUNCTION_INFO_V1(idem_dead_letters);
PG_FUNCTION_INFO_V1(idem_requeue);
PG_FUNCTION_INFO_V1(idem_resolve);

Datum idem_receive(PG_FUNCTION_ARGS) {
    EventCall call = WritingCall(fcinfo, Action::Receive);
    call.payload = JsonbArgument(fcinfo, 4);
    call.fingerprint = FingerprintArgument(fcinfo, 5);
    if (!PG_ARGISNULL(6)) call.occurred_at = PG_GETARG_TIMESTAMPTZ(6);
    call.not_before = NotBeforeArgument(fcinfo, 7);
    RequireArgument(fcinfo, 8, "replace");
    call.replaces = PG_GETARG_BOOL(8);
    call.ordering = NonEmptyTextArgument(fcinfo, 9, "ordering", kMostOrderingBytes);
    PG_RETURN_DATUM(ClaimOf(Perform(call)));
}

Datum idem_once(PG_FUNCTION_ARGS) {
    // Arguments 0 to 2 as everywhere; 5 is the batch.
    RequireArgument(fcinfo, 0, "dedup");
    RequireArgument(fcinfo, 3, "action");
    EventCall call = {};
    call.dedup = PG_GETARG_OID(0);
    call.action = Action::Acquire;
    call.once = MayBeEvaluatedAgain(fcinfo);
    RequireArgument(fcinfo, 1, "handler");
    RequireArgument(fcinfo, 2, "event_id");
    call.event = MakeIdentity(NonEmptyTextArgument(fcinfo, 1, "handler", kMostHandlerBytes),
                              NonEmptyTextArgument(fcinfo, 2, "event_id", kMostEventIdBytes),
                              NonEmptyTextArgument(fcinfo, 5, "batch", kMostBatchBytes));
    // The action is given the payload that an earlier call left.
    CheckPrivileges(call.dedup, ACL_SELECT | ACL_INSERT | ACL_UPDATE);
    call.payload = JsonbArgument(fcinfo, 4);
    call.fingerprint = FingerprintArgument(fcinfo, 6);
    if (!PG_ARGISNULL(7)) call.occurred_at = PG_GETARG_TIMESTAMPTZ(7);
    call.wait = PauseArgument(fcinfo, 8, "wait").value_or(0);
    Oid action = PG_GETARG_OID(3);
    CheckAction(action);
    PG_RETURN_DATUM(ClaimOf(PerformOnceOnly(call, action)));
}

Datum idem_due(PG_FUNCTION_ARGS) {
    RequireArgument(fcinfo, 0, "dedup");
    RequireArgument(fcinfo, 2, "max_events");
    Oid dedup = PG_GETARG_OID(0);
    text *handler = NonEmptyTextArgument(fcinfo, 1, "handler", kMostHandlerBytes);
    int most = PG_GETARG_INT32(2);
    if (most < 1 || most > kMostDue)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("max_events must be 1 to %d, not %d", kMostDue, most)));
    Micros hot_window = WindowArgument(fcinfo, 3, "hot_window", 0);
    CheckPrivileges(dedup, ACL_SELECT | ACL_INSERT | ACL_UPDATE);
    PreventCommandIfReadOnly("idem_due()");
    (void)OpenDedupTable(dedup);
    ClaimDue(dedup, handler, most, hot_window, StartResult(fcinfo));
    return Datum{0};
}

Datum idem_dead_letters(PG_FUNCTION_ARGS) {
    RequireArgument(fcinfo, 0, "dedup");
    Oid dedup = PG_GETARG_OID(0);
    text *handler = NonEmptyTextArgument(fcinfo, 1, "handler", kMostHandlerBytes);
    CheckPrivileges(dedup, ACL_SELECT);
    (void)OpenDedupTable(dedup);
    PutDeadLetters(dedup, handler, StartResult(fcinfo));
    return Datum{0};
}

Datum idem_requeue(PG_FUNCTION_ARGS) { PG_RETURN_DATUM(ClaimOf(Perform(WritingCall(fcinfo, Action::Requeue)))); }

Datum idem_resolve(PG_FUNCTION_ARGS) {
    EventCall call = WritingCall(fcinfo, Action::Resolve);
    RequireArgument(fcinfo, 4, "note");
    call.note = NoteOf(NonEmptyTextArgument(fcinfo, 4, "note", kMostErrorBytes));
    call.result = ResultArgument(fcinfo, 5);
    PG_RETURN_DATUM(ClaimOf(Perform(call)));
}

}  // extern "C"
