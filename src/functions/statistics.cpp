// The SQL functions that tell what was counted and measured, and which windows that asks for.

#include "core/advice.hpp"
#include "server/base/arguments.hpp"
#include "server/base/postgres.hpp"
#include "server/base/privileges.hpp"
#include "server/claim/stat_memory.hpp"
#include "server/ring/unsettled.hpp"
#include "server/table/policy.hpp"
#include "server/table/registry.hpp"

using namespace idem;

namespace {

// Statistics are for who may read everybody's, and for the owner of the table.
bool MayReadStats(Oid dedup) {
    if (has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS)) return true;
    return OidIsValid(dedup) && SearchSysCacheExists1(RELOID, ObjectIdGetDatum(dedup)) &&
           OwnsRelation(dedup, GetUserId());
}

Datum HandlerOf(const HandlerStat &stat) {
    return PointerGetDatum(cstring_to_text_with_len(stat.handler, stat.handler_bytes));
}

ReturnSetInfo *StartResult(FunctionCallInfo fcinfo) {
    InitMaterializedSRF(fcinfo, 0);
    return reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
}

// A row of values, one after the other.
class Row {
public:
    void Add(Datum value, bool null = false) {
        values_[count_] = null ? Datum{0} : value;
        nulls_[count_++] = null;
    }
    void AddCount(int64_t count) { Add(Int64GetDatum(count)); }
    void AddTime(TimestampTz time) { Add(TimestampTzGetDatum(time), time == 0); }
    void AddSpan(Micros span, bool known) { Add(known ? IntervalPGetDatum(IntervalOfSpan(span)) : Datum{0}, !known); }
    void Put(ReturnSetInfo *result) { tuplestore_putvalues(result->setResult, result->setDesc, values_, nulls_); }

private:
    static constexpr int kMostColumns = 40;
    Datum values_[kMostColumns] = {};
    bool nulls_[kMostColumns] = {};
    int count_ = 0;
};

void PutStat(const HandlerStat &stat, void *argument) {
    if (!MayReadStats(stat.dedup)) return;
    const Numbers &numbers = stat.numbers;
    bool others = !OidIsValid(stat.dedup);
    Row row;
    row.Add(ObjectIdGetDatum(stat.dedup), others);
    row.Add(HandlerOf(stat), others);
    for (int64_t count : numbers.counts) row.AddCount(count);
    row.Add(Float8GetDatum(numbers.late_by_chance));
    row.AddSpan(numbers.oldest_stale, numbers.Of(Counter::Stale) > 0);
    row.AddTime(numbers.last_duplicate_at);
    row.AddTime(numbers.last_conflict_at);
    for (const SpanHistogram *histogram : {&numbers.duplicates, &numbers.work}) {
        bool any = histogram->Total() > 0;
        for (double quantile : {0.5, 0.99, 1.0}) row.AddSpan(histogram->Quantile(quantile), any);
    }
    row.AddTime(stat.reset_at);
    row.Put(static_cast<ReturnSetInfo *>(argument));
}

// Raises 42809 unless the table is registered. The table itself is not looked at: somebody may have locked it.
void CheckRegistered(Oid dedup) {
    if (ReadPolicy(dedup)) return;
    const char *name = get_rel_name(dedup);
    ereport(ERROR,
            (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is not a dedup table", name != nullptr ? name : "?")));
}

void ResetOwned(const HandlerStat &stat, void *argument) {
    auto **tables = static_cast<List **>(argument);
    if (OidIsValid(stat.dedup) ? MayReadStats(stat.dedup) && OwnsRelation(stat.dedup, GetUserId()) : superuser())
        *tables = list_append_unique_oid(*tables, stat.dedup);
}

// What is asked of idem_window_advice, and what its answer is made of.
struct Asked {
    Oid dedup;
    std::string_view handler;  // empty = each of them, and all together
    ReturnSetInfo *result;
    Numbers *all;
    int seen;
};

char *TextOf(Micros span) {
    return DatumGetCString(DirectFunctionCall1(interval_out, IntervalPGetDatum(IntervalOfSpan(span))));
}

// Why the windows are advised, in sentences.
text *Reason(const Advice &advice, const Policy &policy) {
    StringInfoData why;
    initStringInfo(&why);
    if (advice.hot == 0)
        appendStringInfo(&why, "hot_window: not enough seen yet, %llu of %llu settled claims. ",
                         static_cast<unsigned long long>(advice.work.count),
                         static_cast<unsigned long long>(kFewestForAdvice));
    else
        appendStringInfo(&why, "hot_window: 99 %% of the work took at most %s%s. ", TextOf(advice.work.p99),
                         !policy.transaction_mode && policy.windows.hot < advice.work.p99
                             ? ", longer than the lease, so others may have done it too"
                             : "");
    if (advice.cold == 0) {
        appendStringInfo(&why, "cold_window: not enough seen yet, %llu of %llu redelivered events.",
                         static_cast<unsigned long long>(advice.redelivered.count),
                         static_cast<unsigned long long>(kFewestForAdvice));
    } else {
        appendStringInfo(&why,
                         "cold_window: twice the longest span seen, %s%s; and at least the oldest replay that you "
                         "agreed on, which can't be measured.",
                         TextOf(advice.redelivered.longest),
                         policy.windows.cold < advice.cold ? ", so the window is too short" : "");
        if (!policy.transaction_mode && advice.redelivery_is_busy)
            appendStringInfoString(
                &why,
                " The lease outlives the sender's last redelivery: after a crash nobody comes again, so a "
                "job has to take the event up by idem_due.");
    }
    return cstring_to_text_with_len(why.data, why.len);
}

void PutSpans(Row *row, const Spans &spans) {
    bool any = spans.count > 0;
    for (Micros span : {spans.p50, spans.p90, spans.p99, spans.longest}) row->AddSpan(span, any);
}

void PutAdvice(const Asked &asked, const Numbers &numbers, std::string_view handler) {
    Policy policy = *ReadPolicyOf(asked.dedup, handler);
    Advice advice = AdviseWindows(numbers, policy.windows.hot);
    double events = static_cast<double>(Max(advice.all.count, 1));
    Row row;
    row.Add(PointerGetDatum(cstring_to_text_with_len(handler.data(), static_cast<int>(handler.size()))),
            handler.empty());
    row.AddCount(static_cast<int64_t>(advice.events));
    row.AddCount(static_cast<int64_t>(advice.redelivered.count));
    row.Add(Float8GetDatum(static_cast<double>(advice.redelivered.count) / events));
    PutSpans(&row, advice.redelivered);
    row.AddSpan(advice.redelivered.p99_low, advice.redelivered.count > 0);
    row.AddSpan(advice.redelivered.p99_high, advice.redelivered.count > 0);
    row.AddSpan(advice.all.p99, advice.all.count > 0);
    PutSpans(&row, advice.work);
    row.AddSpan(policy.windows.hot, true);
    row.AddSpan(policy.windows.cold, true);
    row.AddSpan(advice.hot, advice.hot > 0);
    row.AddSpan(advice.retry_span, advice.retry_span > 0);
    row.AddSpan(Max(advice.cold, policy.windows.cold), advice.cold > 0);
    row.Add(PointerGetDatum(Reason(advice, policy)));
    row.Put(asked.result);
}

void AdviseHandler(const HandlerStat &stat, void *argument) {
    auto *asked = static_cast<Asked *>(argument);
    std::string_view handler(stat.handler, stat.handler_bytes);
    if (stat.dedup != asked->dedup) return;
    if (!asked->handler.empty() && handler != asked->handler) return;
    asked->seen++;
    if (asked->handler.empty()) asked->all->Merge(stat.numbers);
    PutAdvice(*asked, stat.numbers, handler);
}

// The rows of one dedup table.
struct UnsettledOf {
    Oid dedup;
    ReturnSetInfo *result;
};

void PutUnsettled(const Unsettled &unsettled, void *argument) {
    auto *of = static_cast<UnsettledOf *>(argument);
    bool locked = unsettled.handler == nullptr;
    Row row;
    row.Add(ObjectIdGetDatum(of->dedup));
    row.Add(PointerGetDatum(unsettled.handler), locked);
    row.Add(ObjectIdGetDatum(unsettled.state), locked);
    row.Add(Int64GetDatum(unsettled.events), locked);
    row.Add(TimestampTzGetDatum(unsettled.oldest), locked);
    row.Add(TimestampTzGetDatum(unsettled.due), locked);
    row.Put(of->result);
}

bool MayRead(Oid dedup) {
    return MayReadStats(dedup) || pg_class_aclcheck(dedup, GetUserId(), ACL_SELECT) == ACLCHECK_OK;
}

}  // namespace

extern "C" {

PG_FUNCTION_INFO_V1(idem_stat_rows);
PG_FUNCTION_INFO_V1(idem_stat_reset);
PG_FUNCTION_INFO_V1(idem_unsettled_rows);
PG_FUNCTION_INFO_V1(idem_window_advice);

Datum idem_stat_rows(PG_FUNCTION_ARGS) {
    ReadStats(PutStat, StartResult(fcinfo));
    return Datum{0};
}

Datum idem_stat_reset(PG_FUNCTION_ARGS) {
    if (!PG_ARGISNULL(0)) {
        CheckRegistered(PG_GETARG_OID(0));
        CheckOwner(PG_GETARG_OID(0));
        ResetStats(PG_GETARG_OID(0));
        PG_RETURN_VOID();
    }
    List *tables = NIL;
    ReadStats(ResetOwned, &tables);
    for (int i = 0; i < list_length(tables); i++) ResetStats(list_nth_oid(tables, i));
    PG_RETURN_VOID();
}

Datum idem_unsettled_rows(PG_FUNCTION_ARGS) {
    UnsettledOf of = {InvalidOid, StartResult(fcinfo)};
    List *tables = RegisteredTables();
    SPI_connect();
    for (int i = 0; i < list_length(tables); i++) {
        of.dedup = list_nth_oid(tables, i);
        if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(of.dedup)) || !MayRead(of.dedup)) continue;
        ReadUnsettled(of.dedup, PutUnsettled, &of);
    }
    SPI_finish();
    return Datum{0};
}

Datum idem_window_advice(PG_FUNCTION_ARGS) {
    RequireArgument(fcinfo, 0, "dedup");
    Asked asked = {};
    asked.dedup = PG_GETARG_OID(0);
    const text *handler = NonEmptyTextArgument(fcinfo, 1, "handler", kMostHandlerBytes);
    if (handler != nullptr) asked.handler = ViewOf(handler);
    CheckRegistered(asked.dedup);
    if (!MayReadStats(asked.dedup)) CheckOwner(asked.dedup);
    asked.result = StartResult(fcinfo);
    asked.all = static_cast<Numbers *>(palloc0(sizeof(Numbers)));
    ReadStats(AdviseHandler, &asked);
    if (handler != nullptr && asked.seen == 0)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("nothing is known of handler \"%s\" of dedup table \"%s\"", text_to_cstring(handler),
                               get_rel_name(asked.dedup)),
                        IsPreloaded() ? errdetail("No call of it was counted since the statistics were reset.")
                                      : errdetail("Nothing is counted, as idem is not in shared_preload_libraries.")));
    if (handler == nullptr) PutAdvice(asked, *asked.all, {});
    return Datum{0};
}

}  // extern "C"
