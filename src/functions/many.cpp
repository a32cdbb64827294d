// The SQL functions on many events at once: read and check the arrays, call, return a row for each.

#include "server/base/arguments.hpp"
#include "server/base/errors.hpp"
#include "server/base/postgres.hpp"
#include "server/base/privileges.hpp"
#include "server/claim/answer.hpp"
#include "server/claim/call_arguments.hpp"
#include "server/claim/evaluation.hpp"
#include "server/claim/judging.hpp"
#include "server/claim/many.hpp"
#include "server/table/dedup_table.hpp"

using namespace idem;

namespace {

struct Elements {
    Datum *values;
    bool *nulls;
    int count;

    bool Has(int i) const { return values != nullptr && !nulls[i]; }
};

// The elements of an array argument; null = none. Where there are, they must be as many as there are events.
Elements ArrayArgument(FunctionCallInfo fcinfo, int number, const char *name, Oid type, int count) {
    Elements elements = {};
    if (PG_ARGISNULL(number)) return elements;
    int16 length = 0;
    bool by_value = false;
    char align = 0;
    get_typlenbyvalalign(type, &length, &by_value, &align);
    deconstruct_array(PG_GETARG_ARRAYTYPE_P(number), type, length, by_value, align, &elements.values, &elements.nulls,
                      &elements.count);
    if (count >= 0 && elements.count != count)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s must have as many elements as event_ids", name),
                 errdetail("They have %d and %d.", elements.count, count)));
    return elements;
}

// Says in the error of a bad element which one it was.
void TellElement(void *number) { errcontext("element %d of the arrays", *static_cast<int *>(number)); }

// check(i) for each of `count` elements; what it raises names the element, counted from 1.
template <class Check>
void ForEachElement(int count, Check check) {
    int number = 0;
    ErrorContextCallback context = {error_context_stack, TellElement, &number};
    error_context_stack = &context;
    for (int i = 0; i < count; i++) {
        number = i + 1;
        check(i);
    }
    error_context_stack = context.previous;
}

struct Calls {
    EventCall *calls;
    int count;
};

// A call for each of event_ids. Arguments 0 to 3: dedup, handler, event_ids, batch.
Calls CallsOnEvents(FunctionCallInfo fcinfo, Action action) {
    RequireArgument(fcinfo, 0, "dedup");
    RequireArgument(fcinfo, 1, "handler");
    RequireArgument(fcinfo, 2, "event_ids");
    Oid dedup = PG_GETARG_OID(0);
    text *handler = NonEmptyTextArgument(fcinfo, 1, "handler", kMostHandlerBytes);
    text *batch = NonEmptyTextArgument(fcinfo, 3, "batch", kMostBatchBytes);
    Elements ids = ArrayArgument(fcinfo, 2, "event_ids", TEXTOID, -1);
    CheckPrivileges(dedup, ACL_INSERT | ACL_UPDATE);
    bool once = MayBeEvaluatedAgain(fcinfo);

    auto *calls =
        static_cast<EventCall *>(MemoryContextAllocHuge(CurrentMemoryContext, Max(ids.count, 1) * sizeof(EventCall)));
    ForEachElement(ids.count, [&](int i) {
        if (ids.nulls[i])
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("event_ids must not contain nulls")));
        text *id = CheckText(DatumGetTextPP(ids.values[i]), "event_id", kMostEventIdBytes);
        calls[i] = EventCall{};
        calls[i].dedup = dedup;
        calls[i].action = action;
        calls[i].event = MakeIdentity(handler, id, batch);
        calls[i].once = once;
    });
    return {calls, ids.count};
}

EventAnswer *PerformAll(const Calls &all) {
    auto *answers = static_cast<EventAnswer *>(
        MemoryContextAllocHuge(CurrentMemoryContext, Max(all.count, 1) * sizeof(EventAnswer)));
    PerformMany(all.calls, all.count, answers);
    return answers;
}

// event_id and the columns of idem_claim, in the order of the input.
void PutAnswers(FunctionCallInfo fcinfo, const Calls &all, const EventAnswer *answers) {
    InitMaterializedSRF(fcinfo, 0);
    auto *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
    for (int i = 0; i < all.count; i++) {
        Datum values[1 + kClaimColumns] = {};
        bool nulls[1 + kClaimColumns] = {};
        values[0] = PointerGetDatum(all.calls[i].event.event_id);
        SetClaim(answers[i], values + 1, nulls + 1);
        tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
    }
}

// The SQLSTATE of a claim that is not the caller's any more; nullptr = it still is. What is asked wrongly is raised.
const char *WhyLost(const EventCall &call, const Decision &decision) {
    switch (decision.fault) {
        case Fault::None:
            return nullptr;
        case Fault::LeaseLost:
            return unpack_sql_state(kLeaseLost);
        case Fault::NoSuchClaim:
            return unpack_sql_state(kNoSuchClaim);
        default:
            RaiseFault(decision.fault, call, decision.record);
    }
}

// event_id, extended, lease_until, error, in the order of the input.
void PutLeases(FunctionCallInfo fcinfo, const Calls &all, const EventAnswer *answers) {
    InitMaterializedSRF(fcinfo, 0);
    auto *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
    for (int i = 0; i < all.count; i++) {
        const Decision &decision = answers[i].decision;
        const char *lost = WhyLost(all.calls[i], decision);
        bool leased = lost == nullptr && decision.record.state == State::Processing;
        Datum values[] = {PointerGetDatum(all.calls[i].event.event_id), BoolGetDatum(lost == nullptr),
                          TimestampTzGetDatum(decision.record.claimable_at),
                          lost == nullptr ? Datum{0} : CStringGetTextDatum(lost)};
        bool nulls[] = {false, false, !leased, lost == nullptr};
        tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
    }
}

}  // namespace

extern "C" {

PG_FUNCTION_INFO_V1(idem_acquire_many);
PG_FUNCTION_INFO_V1(idem_commit_many);
PG_FUNCTION_INFO_V1(idem_release_many);
PG_FUNCTION_INFO_V1(idem_extend_many);

Datum idem_acquire_many(PG_FUNCTION_ARGS) {
    Calls all = CallsOnEvents(fcinfo, Action::Acquire);
    Elements fingerprints = ArrayArgument(fcinfo, 4, "fingerprints", BYTEAOID, all.count);
    Elements occurred_at = ArrayArgument(fcinfo, 5, "occurred_at", TIMESTAMPTZOID, all.count);
    Elements payloads = ArrayArgument(fcinfo, 6, "payloads", JSONBOID, all.count);
    text *owner = NonEmptyTextArgument(fcinfo, 7, "owner", kMostOwnerBytes);
    Micros hot_window = WindowArgument(fcinfo, 8, "hot_window", 0);
    ForEachElement(all.count, [&](int i) {
        EventCall &call = all.calls[i];
        if (fingerprints.Has(i)) call.fingerprint = CheckFingerprint(DatumGetByteaPP(fingerprints.values[i]));
        if (occurred_at.Has(i)) call.occurred_at = DatumGetTimestampTz(occurred_at.values[i]);
        if (payloads.Has(i)) call.payload = DatumGetJsonbP(payloads.values[i]);
        call.owner = owner;
        call.hot_window = hot_window;
    });
    PutAnswers(fcinfo, all, PerformAll(all));
    return Datum{0};
}

Datum idem_commit_many(PG_FUNCTION_ARGS) {
    Calls all = CallsOnEvents(fcinfo, Action::Commit);
    Elements results = ArrayArgument(fcinfo, 4, "results", JSONBOID, all.count);
    Elements attempts = ArrayArgument(fcinfo, 5, "attempts", INT4OID, all.count);
    Micros cold_window = WindowArgument(fcinfo, 6, "cold_window", 0);
    ForEachElement(all.count, [&](int i) {
        EventCall &call = all.calls[i];
        if (results.Has(i)) call.result = CheckResult(DatumGetJsonbP(results.values[i]));
        if (attempts.Has(i)) call.attempt = CheckAttempt(DatumGetInt32(attempts.values[i]));
        call.cold_window = cold_window;
    });
    const EventAnswer *answers = PerformAll(all);
    Micros remembered_until = kForever;
    bool bypassed = false;
    for (int i = 0; i < all.count; i++) {
        bypassed = bypassed || answers[i].decision.outcome == Outcome::Bypassed;
        remembered_until = Min(remembered_until, answers[i].decision.record.expires_at);
    }
    if (bypassed || all.count == 0) PG_RETURN_NULL();
    PG_RETURN_TIMESTAMPTZ(remembered_until);
}

Datum idem_release_many(PG_FUNCTION_ARGS) {
    Calls all = CallsOnEvents(fcinfo, Action::GiveBack);
    Elements errors = ArrayArgument(fcinfo, 4, "errors", TEXTOID, all.count);
    Elements attempts = ArrayArgument(fcinfo, 5, "attempts", INT4OID, all.count);
    std::optional<Micros> retry_after = PauseArgument(fcinfo, 6, "retry_after");
    RequireArgument(fcinfo, 7, "retry");
    bool gives_up = !PG_GETARG_BOOL(7);
    ForEachElement(all.count, [&](int i) {
        EventCall &call = all.calls[i];
        if (errors.Has(i)) {
            call.action = Action::Fail;
            call.error = ErrorText(DatumGetTextPP(errors.values[i]));
        }
        if (attempts.Has(i)) call.attempt = CheckAttempt(DatumGetInt32(attempts.values[i]));
        call.retry_after = retry_after;
        call.gives_up = gives_up;
        if (gives_up) CheckGivesUp(call);
    });
    PutAnswers(fcinfo, all, PerformAll(all));
    return Datum{0};
}

Datum idem_extend_many(PG_FUNCTION_ARGS) {
    Calls all = CallsOnEvents(fcinfo, Action::Extend);
    Elements attempts = ArrayArgument(fcinfo, 4, "attempts", INT4OID, all.count);
    Micros hot_window = WindowArgument(fcinfo, 5, "hot_window", 0);
    for (int i = 0; i < all.count; i++) {
        EventCall &call = all.calls[i];
        if (attempts.Has(i)) call.attempt = CheckAttempt(DatumGetInt32(attempts.values[i]));
        call.hot_window = hot_window;
        call.turn = i + 1;
        call.forgiving = true;
    }
    PutLeases(fcinfo, all, PerformAll(all));
    return Datum{0};
}

}  // extern "C"
