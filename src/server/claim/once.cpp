#include "server/claim/once.hpp"

#include "server/base/subtransaction.hpp"
#include "server/claim/call_arguments.hpp"
#include "server/claim/perform.hpp"

namespace idem {
namespace {

// What else goes wrong says nothing about the event, and is for the caller or the server to deal with.
bool IsSwallowed(const ErrorData &error) {
    int category = ERRCODE_TO_CATEGORY(error.sqlerrcode);
    return category != ERRCODE_TRANSACTION_ROLLBACK && category != ERRCODE_OPERATOR_INTERVENTION;
}

text *Describe(const ErrorData *error) {
    StringInfoData description;
    initStringInfo(&description);
    appendStringInfo(&description, "%s: %s", unpack_sql_state(error->sqlerrcode), error->message);
    if (error->detail != nullptr) appendStringInfo(&description, "\nDETAIL: %s", error->detail);
    if (error->context != nullptr) appendStringInfo(&description, "\nCONTEXT: %s", error->context);
    return ErrorText(description.data, description.len);
}

Jsonb *Run(Oid action, Jsonb *payload) {
    FmgrInfo function;
    fmgr_info(action, &function);
    // The server would not call it, and the event would be done without a trace.
    if (function.fn_strict && payload == nullptr)
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("payload must not be null"),
                        errdetail("Function \"%s\" is strict.", get_func_name(action))));
    LOCAL_FCINFO(fcinfo, 1);
    InitFunctionCallInfoData(*fcinfo, &function, 1, InvalidOid, nullptr, nullptr);
    fcinfo->args[0].value = PointerGetDatum(payload);
    fcinfo->args[0].isnull = payload == nullptr;
    Datum result = FunctionCallInvoke(fcinfo);
    return fcinfo->isnull ? nullptr : CheckResult(DatumGetJsonbP(result));
}

}  // namespace

void CheckAction(Oid action) {
    HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(action));
    if (!HeapTupleIsValid(tuple))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION), errmsg("function with OID %u does not exist", action)));
    auto *form = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple));
    bool fits = form->prokind == PROKIND_FUNCTION && !form->proretset && form->prorettype == JSONBOID &&
                form->pronargs == 1 && form->proargtypes.values[0] == JSONBOID;
    const char *name = pstrdup(NameStr(form->proname));
    ReleaseSysCache(tuple);
    if (!fits)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("function \"%s\" is no action", name),
                        errdetail("An action takes one argument of type jsonb and returns jsonb.")));
    if (!MayExecute(action, GetUserId())) aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, name);
}

EventAnswer PerformOnceOnly(const EventCall &acquire, Oid action) {
    EventAnswer claim = Perform(acquire);
    if (claim.decision.outcome == Outcome::Bypassed) claim.result = Run(action, acquire.payload);
    if (claim.decision.outcome != Outcome::Acquired) return claim;

    Jsonb *result = nullptr;
    Jsonb *payload = acquire.payload != nullptr ? acquire.payload : claim.payload;
    const ErrorData *error = InSubtransaction(IsSwallowed, [&] { result = Run(action, payload); });
    EventCall settle = {};
    settle.dedup = acquire.dedup;
    settle.event = acquire.event;
    settle.action = error == nullptr ? Action::Commit : Action::Fail;
    settle.result = error == nullptr ? result : nullptr;
    settle.error = error == nullptr ? nullptr : Describe(error);
    EventAnswer settled = Perform(settle);
    if (error != nullptr) return settled;
    claim.result = result;
    return claim;
}

}  // namespace idem
