// The SQL functions that make dedup tables and set their policies: read and check the arguments, call, return.

#include "core/ring.hpp"
#include "server/base/arguments.hpp"
#include "server/base/postgres.hpp"
#include "server/base/privileges.hpp"
#include "server/claim/call_arguments.hpp"
#include "server/table/create.hpp"
#include "server/table/dedup_table.hpp"

using namespace idem;

namespace {

constexpr int kMostAttempts = 1000000;

Policy PolicyArguments(FunctionCallInfo fcinfo, int hot, int cold, int mode) {
    RequireArgument(fcinfo, hot, "hot_window");
    RequireArgument(fcinfo, cold, "cold_window");
    RequireArgument(fcinfo, mode, "mode");
    Policy policy = DefaultPolicy();
    policy.windows.hot = WindowArgument(fcinfo, hot, "hot_window", 0);
    policy.windows.cold = WindowArgument(fcinfo, cold, "cold_window", 0);
    policy.transaction_mode = TransactionModeOf(ViewOf(PG_GETARG_TEXT_PP(mode)));
    CheckPolicy(policy);
    return policy;
}

// Arguments 2 to 12 of idem_set_policy; null = as it was.
PolicyChange ChangeArguments(FunctionCallInfo fcinfo) {
    auto window = [&](int number, const char *name) -> std::optional<Micros> {
        if (PG_ARGISNULL(number)) return std::nullopt;
        return WindowArgument(fcinfo, number, name, 0);
    };
    PolicyChange change;
    change.hot_window = window(2, "hot_window");
    change.cold_window = window(3, "cold_window");
    if (!PG_ARGISNULL(4)) change.transaction_mode = TransactionModeOf(ViewOf(PG_GETARG_TEXT_PP(4)));
    if (!PG_ARGISNULL(5)) change.max_attempts = PG_GETARG_INT32(5);
    if (change.max_attempts && (*change.max_attempts < 1 || *change.max_attempts > kMostAttempts))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("max_attempts must be 1 to %d, not %d", kMostAttempts, *change.max_attempts)));
    change.backoff_base = PauseArgument(fcinfo, 6, "backoff_base");
    change.backoff_cap = PauseArgument(fcinfo, 7, "backoff_cap");
    if (!PG_ARGISNULL(8)) change.allows_unavailable = AllowsUnavailable(ViewOf(PG_GETARG_TEXT_PP(8)));
    change.unresolved_window = window(9, "unresolved_window");
    if (!PG_ARGISNULL(10)) change.checks_stale = PG_GETARG_BOOL(10);
    if (!PG_ARGISNULL(11)) change.skips_dead = PG_GETARG_BOOL(11);
    if (!PG_ARGISNULL(12)) change.notifies = PG_GETARG_BOOL(12);
    return change;
}

// Keeps others from changing the policy until the transaction ends; raises unless the user owns the table.
void LockPolicy(Oid dedup) {
    CheckOwner(dedup);
    LockRelationOid(dedup, ShareUpdateExclusiveLock);
    (void)OpenDedupTable(dedup);
}

}  // namespace

extern "C" {

PG_FUNCTION_INFO_V1(idem_create_table);
PG_FUNCTION_INFO_V1(idem_attach_table);
PG_FUNCTION_INFO_V1(idem_set_policy);
PG_FUNCTION_INFO_V1(idem_reset_policy);
PG_FUNCTION_INFO_V1(idem_channel);

Datum idem_create_table(PG_FUNCTION_ARGS) {
    RequireArgument(fcinfo, 0, "table_name");
    RequireArgument(fcinfo, 4, "generations");
    RequireArgument(fcinfo, 5, "unlogged");
    Policy policy = PolicyArguments(fcinfo, 1, 2, 3);
    int generations = PG_GETARG_INT32(4);
    if (generations < kFewestSlots || generations > kMostSlots)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("generations must be %d to %d, not %d", kFewestSlots, kMostSlots, generations)));
    PG_RETURN_OID(CreateDedupTable(PG_GETARG_TEXT_PP(0), policy, generations, PG_GETARG_BOOL(5)));
}

Datum idem_attach_table(PG_FUNCTION_ARGS) {
    RequireArgument(fcinfo, 0, "dedup");
    Policy policy = PolicyArguments(fcinfo, 1, 2, 3);
    PreventCommandIfReadOnly("idem_attach_table()");
    CheckOwner(PG_GETARG_OID(0));
    AttachDedupTable(PG_GETARG_OID(0), policy);
    PG_RETURN_VOID();
}

Datum idem_set_policy(PG_FUNCTION_ARGS) {
    RequireArgument(fcinfo, 0, "dedup");
    const text *handler = NonEmptyTextArgument(fcinfo, 1, "handler", kMostHandlerBytes);
    PolicyChange change = ChangeArguments(fcinfo);
    PreventCommandIfReadOnly("idem_set_policy()");
    LockPolicy(PG_GETARG_OID(0));
    ChangePolicy(PG_GETARG_OID(0), handler, change);
    PG_RETURN_VOID();
}

Datum idem_reset_policy(PG_FUNCTION_ARGS) {
    RequireArgument(fcinfo, 0, "dedup");
    RequireArgument(fcinfo, 1, "handler");
    const text *handler = NonEmptyTextArgument(fcinfo, 1, "handler", kMostHandlerBytes);
    PreventCommandIfReadOnly("idem_reset_policy()");
    LockPolicy(PG_GETARG_OID(0));
    PG_RETURN_BOOL(ResetPolicy(PG_GETARG_OID(0), handler));
}

Datum idem_channel(PG_FUNCTION_ARGS) { PG_RETURN_TEXT_P(cstring_to_text(ChannelOf(PG_GETARG_OID(0)))); }

}  // extern "C"
