// The SQL functions that tell what the background worker does, and what it has made.

#include "server/arguments.hpp"
#include "server/bypass.hpp"
#include "server/dedup_table.hpp"
#include "server/filter_memory.hpp"
#include "server/postgres.hpp"
#include "server/worker_status.hpp"

using namespace idem;

extern "C" {

PG_FUNCTION_INFO_V1(idem_bypassed);
PG_FUNCTION_INFO_V1(idem_filter);
PG_FUNCTION_INFO_V1(idem_preloaded);
PG_FUNCTION_INFO_V1(idem_worker_passes);
PG_FUNCTION_INFO_V1(idem_worker_progress);

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

Datum idem_worker_passes(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto *result = reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo);
    std::optional<PassStatus> passes = PassesOf(MyDatabaseId);
    if (passes) {
        bool finished = passes->finished_at != 0;
        Datum values[] = {TimestampTzGetDatum(passes->started_at), TimestampTzGetDatum(passes->finished_at),
                          Int32GetDatum(passes->tables), Int32GetDatum(passes->failed_tables)};
        bool nulls[] = {false, !finished, false, false};
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
