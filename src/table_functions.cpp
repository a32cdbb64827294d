// The SQL functions on dedup tables: read and check the arguments, call, return.

#include "server/arguments.hpp"
#include "server/create_table.hpp"
#include "server/dedup_table.hpp"
#include "server/event_arguments.hpp"
#include "server/postgres.hpp"
#include "server/purge.hpp"
#include "server/touch.hpp"

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

// Arguments 2 to 10 of idem_set_policy; null = as it was.
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
    return change;
}

// Keeps others from changing the policy until the transaction ends; raises unless the user owns the table.
void LockPolicy(Oid dedup) {
    CheckOwner(dedup);
    LockRelationOid(dedup, ShareUpdateExclusiveLock);
    (void)OpenDedupTable(dedup);
}

// Calls use() in a procedure that commits after each step.
template <class F>
void InSteps(FunctionCallInfo fcinfo, const char *procedure, F use) {
    bool atomic = fcinfo->context == nullptr || !IsA(fcinfo->context, CallContext) ||
                  reinterpret_cast<CallContext *>(fcinfo->context)->atomic;
    if (atomic)
        ereport(ERROR,
                (errcode(ERRCODE_ACTIVE_SQL_TRANSACTION), errmsg("%s cannot run inside a transaction block", procedure),
                 errdetail("It commits after each step.")));
    PreventCommandIfReadOnly(psprintf("%s()", procedure));
    SPI_connect_ext(SPI_OPT_NONATOMIC);
    use();
    SPI_finish();
}

// ALTER TABLE OWNER does not reach the partitions, and only their owner may empty them.
void CheckOwnerOfAll(Oid dedup) {
    CheckOwner(dedup);
    DedupTable *table = OpenDedupTable(dedup);
    for (int slot = 0; slot < table->slot_count; slot++) CheckOwner(table->slots[slot].relation);
}

}  // namespace

extern "C" {

PG_FUNCTION_INFO_V1(idem_create_table);
PG_FUNCTION_INFO_V1(idem_attach_table);
PG_FUNCTION_INFO_V1(idem_set_policy);
PG_FUNCTION_INFO_V1(idem_reset_policy);
PG_FUNCTION_INFO_V1(idem_touch);
PG_FUNCTION_INFO_V1(idem_rotate);
PG_FUNCTION_INFO_V1(idem_purge);

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

Datum idem_touch(PG_FUNCTION_ARGS) {
    if (!CALLED_AS_TRIGGER(fcinfo))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("idem_touch can be called only as a trigger")));
    auto *trigger = reinterpret_cast<TriggerData *>(fcinfo->context);
    Touch(trigger->tg_relation);
    bool updates = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event);
    PG_RETURN_POINTER(updates ? trigger->tg_newtuple : trigger->tg_trigtuple);
}

Datum idem_rotate(PG_FUNCTION_ARGS) {
    RequireArgument(fcinfo, 0, "dedup");
    Oid dedup = PG_GETARG_OID(0);
    InSteps(fcinfo, "idem_rotate", [&] {
        CheckOwnerOfAll(dedup);
        RotateTable(dedup);
    });
    PG_RETURN_VOID();
}

Datum idem_purge(PG_FUNCTION_ARGS) {
    bool one = !PG_ARGISNULL(0);
    Oid dedup = one ? PG_GETARG_OID(0) : InvalidOid;
    InSteps(fcinfo, "idem_purge", [&] {
        if (!one) {
            PurgeDatabase(Pace::AtOnce);
            return;
        }
        CheckOwnerOfAll(dedup);
        PurgeTable(dedup, Patience::Waits, Pace::AtOnce);
    });
    PG_RETURN_VOID();
}

}  // extern "C"
