// The SQL functions on events: read and check the arguments, call, return.

#include <algorithm>

#include "core/fingerprint.hpp"
#include "core/key.hpp"
#include "server/base/arguments.hpp"
#include "server/base/extension.hpp"
#include "server/base/json_fingerprint.hpp"
#include "server/base/postgres.hpp"
#include "server/claim/answer.hpp"
#include "server/claim/call_arguments.hpp"
#include "server/claim/perform.hpp"

using namespace idem;

namespace {

Datum FingerprintDatum(const Fingerprint &fingerprint) {
    auto *value = static_cast<bytea *>(palloc(VARHDRSZ + Fingerprint::kSize));
    SET_VARSIZE(value, VARHDRSZ + Fingerprint::kSize);
    memcpy(VARDATA(value), fingerprint.bytes, Fingerprint::kSize);
    return PointerGetDatum(value);
}

// Parts of a business key. An absent one is empty, which none that is given may be.
std::span<std::string_view> PartsOf(ArrayType *array, const char *name, bool may_be_absent) {
    Datum *values = nullptr;
    bool *nulls = nullptr;
    int count = 0;
    deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &count);
    auto *parts = static_cast<std::string_view *>(palloc0(Max(count, 1) * sizeof(std::string_view)));
    for (int i = 0; i < count; i++) {
        parts[i] = nulls[i] ? std::string_view() : ViewOf(DatumGetTextPP(values[i]));
        if (nulls[i] && !may_be_absent)
            ereport(ERROR,
                    (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s %d of the key must not be null", name, i + 1),
                     errhint("A part that may be absent is said to be so: idem_business_key(required => ARRAY[…], "
                             "optional => ARRAY[…]).")));
        if (!nulls[i] && parts[i].empty())
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                            errmsg("%s %d of the key must not be empty", name, i + 1)));
    }
    return {parts, static_cast<size_t>(count)};
}

text *BusinessKeyOf(std::span<std::string_view> required, std::span<std::string_view> optional) {
    if (required.empty())
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("at least one part must be given")));
    size_t count = required.size() + optional.size();
    auto *parts = static_cast<std::string_view *>(palloc(count * sizeof(std::string_view)));
    std::copy(required.begin(), required.end(), parts);
    std::copy(optional.begin(), optional.end(), parts + required.size());
    std::span<const std::string_view> all(parts, count);
    size_t size = BusinessKeySize(all);
    auto *key = static_cast<text *>(palloc(VARHDRSZ + size));
    SET_VARSIZE(key, VARHDRSZ + size);
    ComposeBusinessKey(all, VARDATA(key));
    return key;
}

}  // namespace

extern "C" {

PG_FUNCTION_INFO_V1(idem_acquire);
PG_FUNCTION_INFO_V1(idem_accept);
PG_FUNCTION_INFO_V1(idem_commit);
PG_FUNCTION_INFO_V1(idem_release);
PG_FUNCTION_INFO_V1(idem_extend);
PG_FUNCTION_INFO_V1(idem_lookup);
PG_FUNCTION_INFO_V1(idem_key);
PG_FUNCTION_INFO_V1(idem_business_key);
PG_FUNCTION_INFO_V1(idem_business_key_optional);
PG_FUNCTION_INFO_V1(idem_fingerprint_bytes);
PG_FUNCTION_INFO_V1(idem_fingerprint_text);
PG_FUNCTION_INFO_V1(idem_fingerprint_jsonb);

Datum idem_acquire(PG_FUNCTION_ARGS) {
    EventCall call = WritingCall(fcinfo, Action::Acquire);
    call.fingerprint = FingerprintArgument(fcinfo, 4);
    if (!PG_ARGISNULL(5)) call.occurred_at = PG_GETARG_TIMESTAMPTZ(5);
    call.payload = JsonbArgument(fcinfo, 6);
    call.owner = NonEmptyTextArgument(fcinfo, 7, "owner", kMostOwnerBytes);
    call.wait = PauseArgument(fcinfo, 8, "wait").value_or(0);
    call.hot_window = WindowArgument(fcinfo, 9, "hot_window", 0);
    PG_RETURN_DATUM(ClaimOf(Perform(call)));
}

Datum idem_accept(PG_FUNCTION_ARGS) {
    EventCall call = WritingCall(fcinfo, Action::Accept);
    call.fingerprint = FingerprintArgument(fcinfo, 4);
    if (!PG_ARGISNULL(5)) call.occurred_at = PG_GETARG_TIMESTAMPTZ(5);
    call.result = ResultArgument(fcinfo, 6);
    call.wait = PauseArgument(fcinfo, 7, "wait").value_or(0);
    PG_RETURN_DATUM(ClaimOf(Perform(call)));
}

Datum idem_commit(PG_FUNCTION_ARGS) {
    EventCall call = WritingCall(fcinfo, Action::Commit);
    call.result = ResultArgument(fcinfo, 4);
    call.attempt = AttemptArgument(fcinfo, 5);
    call.cold_window = WindowArgument(fcinfo, 6, "cold_window", 0);
    EventAnswer answer = Perform(call);
    if (answer.decision.outcome == Outcome::Bypassed) PG_RETURN_NULL();
    PG_RETURN_TIMESTAMPTZ(answer.decision.record.expires_at);
}

Datum idem_release(PG_FUNCTION_ARGS) {
    bool failed = !PG_ARGISNULL(4);
    EventCall call = WritingCall(fcinfo, failed ? Action::Fail : Action::GiveBack);
    if (failed) call.error = ErrorText(PG_GETARG_TEXT_PP(4));
    call.attempt = AttemptArgument(fcinfo, 5);
    call.retry_after = PauseArgument(fcinfo, 6, "retry_after");
    RequireArgument(fcinfo, 7, "retry");
    call.gives_up = !PG_GETARG_BOOL(7);
    if (call.gives_up) CheckGivesUp(call);
    PG_RETURN_DATUM(ClaimOf(Perform(call)));
}

Datum idem_extend(PG_FUNCTION_ARGS) {
    EventCall call = WritingCall(fcinfo, Action::Extend);
    call.attempt = AttemptArgument(fcinfo, 4);
    call.hot_window = WindowArgument(fcinfo, 5, "hot_window", 0);
    EventAnswer answer = Perform(call);
    if (answer.decision.record.state != State::Processing) PG_RETURN_NULL();
    PG_RETURN_TIMESTAMPTZ(answer.decision.record.claimable_at);
}

Datum idem_lookup(PG_FUNCTION_ARGS) {
    EventCall call = CallOnEvent(fcinfo, Action::Acquire, ACL_SELECT);
    std::optional<EventRow> row = ReadEvent(call.dedup, call.event.key);
    if (!row) PG_RETURN_NULL();
    TupleDesc desc = lookup_rowtype_tupdesc(InstalledExtension().event_type, -1);
    HeapTuple tuple = heap_form_tuple(desc, row->values, row->nulls);
    ReleaseTupleDesc(desc);
    PG_RETURN_DATUM(HeapTupleGetDatum(tuple));
}

Datum idem_key(PG_FUNCTION_ARGS) {
    Identity event = IdentityArgument(fcinfo, 0);
    auto *key = static_cast<pg_uuid_t *>(palloc(sizeof(pg_uuid_t)));
    static_assert(sizeof(pg_uuid_t) == sizeof(Key));
    memcpy(key, &event.key, sizeof(Key));
    PG_RETURN_UUID_P(key);
}

Datum idem_business_key(PG_FUNCTION_ARGS) {
    RequireArgument(fcinfo, 0, "parts");
    PG_RETURN_TEXT_P(BusinessKeyOf(PartsOf(PG_GETARG_ARRAYTYPE_P(0), "part", false), {}));
}

Datum idem_business_key_optional(PG_FUNCTION_ARGS) {
    RequireArgument(fcinfo, 0, "required");
    RequireArgument(fcinfo, 1, "optional");
    PG_RETURN_TEXT_P(BusinessKeyOf(PartsOf(PG_GETARG_ARRAYTYPE_P(0), "required part", false),
                                   PartsOf(PG_GETARG_ARRAYTYPE_P(1), "optional part", true)));
}

Datum idem_fingerprint_bytes(PG_FUNCTION_ARGS) {
    PG_RETURN_DATUM(FingerprintDatum(FingerprintOfBytes(ViewOf(PG_GETARG_BYTEA_PP(0)))));
}

Datum idem_fingerprint_text(PG_FUNCTION_ARGS) {
    PG_RETURN_DATUM(FingerprintDatum(FingerprintOfBytes(Utf8(ViewOf(PG_GETARG_TEXT_PP(0))))));
}

Datum idem_fingerprint_jsonb(PG_FUNCTION_ARGS) {
    PG_RETURN_DATUM(FingerprintDatum(FingerprintOfPaths(PG_GETARG_JSONB_P(0), PG_GETARG_ARRAYTYPE_P(1))));
}

}  // extern "C"
