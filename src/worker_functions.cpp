// The SQL functions that tell what the background worker does.

#include "server/arguments.hpp"
#include "server/postgres.hpp"
#include "server/worker_status.hpp"

using namespace idem;

extern "C" {

PG_FUNCTION_INFO_V1(idem_worker_passes);
PG_FUNCTION_INFO_V1(idem_worker_progress);

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
