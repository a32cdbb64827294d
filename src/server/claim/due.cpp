#include "server/claim/due.hpp"

#include "server/base/statement.hpp"
#include "server/claim/perform.hpp"

namespace idem {
namespace {

// Columns of the query, and of the result set where it takes them over.
enum DueColumn { kHandler = 1, kEventId, kBatch, kPayload, kError };

// Whatever the statistics say: events that are due are few among many.
void PreferIndexes() {
    for (const char *setting : {"enable_seqscan", "enable_bitmapscan", "enable_sort"})
        (void)set_config_option(setting, "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

SPITupleTable *FindDue(Oid dedup, text *handler, int most) {
    const char *query = psprintf(
        "SELECT handler, event_id, batch, payload, error FROM %s "
        "WHERE claimable_at OPERATOR(pg_catalog.<=) $1 AND expires_at OPERATOR(pg_catalog.>) $1 "
        "AND ($2 IS NULL OR handler OPERATOR(pg_catalog.=) $2) ORDER BY claimable_at LIMIT $3 FOR UPDATE SKIP LOCKED",
        QualifiedNameOf(dedup));
    Oid types[] = {TIMESTAMPTZOID, TEXTOID, INT4OID};
    Datum values[] = {TimestampTzGetDatum(GetCurrentTimestamp()), PointerGetDatum(handler), Int32GetDatum(most)};
    const char nulls[] = {' ', handler == nullptr ? 'n' : ' ', ' ', '\0'};
    int done = SPI_execute_with_args(query, 3, types, values, nulls, false, 0);
    if (done != SPI_OK_SELECT) elog(ERROR, "could not look for due events: %s", SPI_result_code_string(done));
    return SPI_tuptable;
}

// Claims one event that was found.
Outcome Claim(Oid dedup, HeapTuple found, TupleDesc desc, ReturnSetInfo *result) {
    bool nulls[kError + 1] = {};
    Datum columns[kError + 1] = {};
    for (int column = kHandler; column <= kError; column++)
        columns[column] = SPI_getbinval(found, desc, column, &nulls[column]);

    EventCall call = {};
    call.dedup = dedup;
    call.action = Action::Acquire;
    call.event = MakeIdentity(DatumGetTextPP(columns[kHandler]), DatumGetTextPP(columns[kEventId]),
                              nulls[kBatch] ? nullptr : DatumGetTextPP(columns[kBatch]));
    EventAnswer answer = PerformStored(call);  // there is nothing to be done without the store
    if (answer.decision.outcome != Outcome::Acquired) return answer.decision.outcome;

    const Record &record = answer.decision.record;
    Datum values[] = {columns[kHandler],
                      columns[kEventId],
                      columns[kBatch],
                      Int32GetDatum(record.attempt),
                      Int32GetDatum(record.failures),
                      TimestampTzGetDatum(record.first_seen_at),
                      columns[kPayload],
                      columns[kError]};
    bool value_nulls[] = {false, false, nulls[kBatch], false, false, false, nulls[kPayload], nulls[kError]};
    tuplestore_putvalues(result->setResult, result->setDesc, values, value_nulls);
    return Outcome::Acquired;
}

}  // namespace

void ClaimDue(Oid dedup, text *handler, int most, ReturnSetInfo *result) {
    SPI_connect();
    int level = NewGUCNestLevel();
    PreferIndexes();
    int claimed = 0;
    bool changed = true;
    // What was found may have been given up instead: then there is room for others.
    while (claimed < most && changed) {
        SPITupleTable *due = FindDue(dedup, handler, most - claimed);
        changed = false;
        for (uint64 i = 0; i < due->numvals; i++) {
            CHECK_FOR_INTERRUPTS();
            Outcome outcome = Claim(dedup, due->vals[i], due->tupdesc, result);
            if (outcome == Outcome::Acquired) claimed++;
            changed = changed || outcome == Outcome::Acquired || outcome == Outcome::Dead;
        }
        SPI_freetuptable(due);
    }
    AtEOXact_GUC(true, level);
    SPI_finish();
}

}  // namespace idem
