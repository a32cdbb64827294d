#include "server/claim/call_arguments.hpp"

#include "core/fingerprint.hpp"
#include "server/base/privileges.hpp"
#include "server/base/settings.hpp"
#include "server/claim/evaluation.hpp"

namespace idem {

EventCall CallOnEvent(FunctionCallInfo fcinfo, Action action, AclMode privileges) {
    RequireArgument(fcinfo, 0, "dedup");
    EventCall call = {};
    call.dedup = PG_GETARG_OID(0);
    call.action = action;
    call.event = IdentityArgument(fcinfo, 1);
    call.once = MayBeEvaluatedAgain(fcinfo);
    CheckPrivileges(call.dedup, privileges);
    return call;
}

EventCall WritingCall(FunctionCallInfo fcinfo, Action action) {
    return CallOnEvent(fcinfo, action, ACL_INSERT | ACL_UPDATE);
}

bytea *FingerprintArgument(FunctionCallInfo fcinfo, int number) {
    return PG_ARGISNULL(number) ? nullptr : CheckFingerprint(PG_GETARG_BYTEA_PP(number));
}

bytea *CheckFingerprint(bytea *fingerprint) {
    if (!IsFingerprint(ViewOf(fingerprint)))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("fingerprint is not one of idem's"),
                        errhint("Make it with idem_fingerprint.")));
    return fingerprint;
}

text *ErrorText(const char *bytes, int size) {
    return cstring_to_text_with_len(bytes, pg_mbcliplen(bytes, size, kMostErrorBytes));
}

text *ErrorText(const text *error) {
    std::string_view all = ViewOf(error);
    return ErrorText(all.data(), static_cast<int>(all.size()));
}

Jsonb *JsonbArgument(FunctionCallInfo fcinfo, int number) {
    return PG_ARGISNULL(number) ? nullptr : PG_GETARG_JSONB_P(number);
}

Jsonb *ResultArgument(FunctionCallInfo fcinfo, int number) { return CheckResult(JsonbArgument(fcinfo, number)); }

Jsonb *CheckResult(Jsonb *result) {
    if (result != nullptr && VARSIZE(result) > static_cast<Size>(max_result_size_kb) * 1024)
        ereport(
            ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("result is too large"),
             errdetail("It has %zu bytes; at most %d kB are allowed.", static_cast<size_t>(VARSIZE(result)),
                       max_result_size_kb),
             errhint("Store what a duplicate has to answer, not the whole outcome; or raise idem.max_result_size.")));
    return result;
}

void CheckGivesUp(const EventCall &release) {
    bool fails = release.action == Action::Fail;
    if (fails && !release.retry_after) return;
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             fails ? errmsg("retry_after contradicts retry => false")
                   : errmsg("event \"%s\" can't be given up without an error", text_to_cstring(release.event.event_id)),
             errhint("Say by error why it is not to be tried again, and no retry_after.")));
}

std::optional<Micros> PauseArgument(FunctionCallInfo fcinfo, int number, const char *name) {
    if (PG_ARGISNULL(number)) return std::nullopt;
    return PauseOfInterval(PG_GETARG_INTERVAL_P(number), name);
}

}  // namespace idem
