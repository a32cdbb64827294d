// The SQL functions for who operates idem: the trigger of each partition, turning and purging by hand, what the worker
// does and has made.

#include "core/ring.hpp"
#include "server/base/arguments.hpp"
#include "server/base/postgres.hpp"
#include "server/base/privileges.hpp"
#include "server/base/shared_memory.hpp"
#include "server/claim/bypass.hpp"
#include "server/ring/progress.hpp"
#include "server/ring/purge.hpp"
#include "server/ring/touch.hpp"
#include "server/table/dedup_table.hpp"
#include "server/table/filter_memory.hpp"
#include "server/table/gate.hpp"
#include "server/table/partitions.hpp"
#include "server/worker/status.hpp"

using namespace idem;

namespace {

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

PG_FUNCTION_INFO_V1(idem_touch);
PG_FUNCTION_INFO_V1(idem_rotate);
PG_FUNCTION_INFO_V1(idem_purge);
PG_FUNCTION_INFO_V1(idem_bypassed);
PG_FUNCTION_INFO_V1(idem_filter);
PG_FUNCTION_INFO_V1(idem_preloaded);
PG_FUNCTION_INFO_V1(idem_slots);
PG_FUNCTION_INFO_V1(idem_gate_relation);
PG_FUNCTION_INFO_V1(idem_why_no_worker);
PG_FUNCTION_INFO_V1(idem_unknown_databases);
PG_FUNCTION_INFO_V1(idem_worker_passes);
PG_FUNCTION_INFO_V1(idem_worker_progress);

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
    // Where there is a worker, whoever calls does so by hand. Where there is none, it is what a scheduler calls.
    Whose whose = IsPreloaded() ? Whose::ByHand : Whose::Automatic;
    InSteps(fcinfo, "idem_purge", [&] {
        if (!one) {
            PurgeDatabase(Pace::AtOnce, whose);
            return;
        }
        CheckOwnerOfAll(dedup);
        BeginPassByClock(whose);
        PurgeTable(dedup, Patience::Waits, Pace::AtOnce);
    });
    PG_RETURN_VOID();
}

Datum idem_preloaded([[maybe_unused]] PG_FUNCTION_ARGS) { PG_RETURN_BOOL(IsPreloaded()); }

Datum idem_bypassed(PG_FUNCTION_ARGS) {
    std::optional<int64_t> count = BypassCount(PG_GETARG_OID(0));
    if (!count) PG_RETURN_NULL();
    PG_RETURN_INT64(*count);
}

Datum idem_filter(PG_FUNCTION_ARGS) {
    TupleDesc desc = nullptr;
    if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "return type must be a row type");
    size_t bytes = 0;
    uint64_t published = 0;
    bool found = DescribeFilter(PG_GETARG_OID(0), &bytes, &published);
    Datum slots[kMostSlots];
    int count = 0;
    for (int slot = 0; slot < kMostSlots; slot++)
        if ((published >> slot & 1) != 0) slots[count++] = Int32GetDatum(slot);
    Datum values[2] = {Int64GetDatum(static_cast<int64>(bytes)),
                       PointerGetDatum(construct_array(slots, count, INT4OID, sizeof(int32), true, TYPALIGN_INT))};
    bool nulls[2] = {!found, !found};
    PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

Datum idem_slots(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto put = [](const Partition &partition, void *argument) {
        auto *result = static_cast<ReturnSetInfo *>(argument);
        Datum values[] = {Int16GetDatum(static_cast<int16>(partition.slot)), ObjectIdGetDatum(partition.relation),
                          Int64GetDatum(partition.heap_bytes), Int64GetDatum(partition.bytes),
                          Int64GetDatum(partition.events)};
        bool nulls[5] = {};
        tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
    };
    ReadPartitions(PG_GETARG_OID(0), put, fcinfo->resultinfo);
    return Datum{0};
}

Datum idem_gate_relation([[maybe_unused]] PG_FUNCTION_ARGS) { PG_RETURN_OID(kGate); }

Datum idem_why_no_worker(PG_FUNCTION_ARGS) {
    const char *why = WhyNoWorker();
    if (why == nullptr) PG_RETURN_NULL();
    PG_RETURN_TEXT_P(cstring_to_text(why));
}

Datum idem_unknown_databases(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
    auto *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
    List *unknown = UnknownDatabases();
    for (int i = 0; i < list_length(unknown); i++) {
        Datum value = CStringGetTextDatum(static_cast<const char *>(list_nth(unknown, i)));
        bool null = false;
        tuplestore_putvalues(result->setResult, result->setDesc, &value, &null);
    }
    return Datum{0};
}

Datum idem_worker_passes(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
    std::optional<PassStatus> passes = PassesOf(MyDatabaseId);
    if (passes) {
        bool finished = passes->finished_at != 0;
        Datum values[] = {TimestampTzGetDatum(passes->started_at), TimestampTzGetDatum(passes->finished_at),
                          Int32GetDatum(passes->purged.tables), Int32GetDatum(passes->purged.failed),
                          DirectFunctionCall2(timestamp_mi, TimestampTzGetDatum(passes->finished_at),
                                              TimestampTzGetDatum(passes->took_since))};
        bool nulls[] = {false, !finished, false, false, !finished};
        tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
    }
    return Datum{0};
}

Datum idem_worker_progress(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
    std::optional<PassProgress> progress = ProgressOf(MyDatabaseId);
    if (progress) {
        Datum values[] = {ObjectIdGetDatum(progress->table), CStringGetTextDatum(PhaseName(progress->phase)),
                          Int64GetDatum(progress->done), Int64GetDatum(progress->total)};
        bool nulls[4] = {};
        tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
    }
    return Datum{0};
}

}  // extern "C"
