#include "server/table/generation.hpp"

#include "server/base/extension.hpp"
#include "server/base/own_table.hpp"

namespace idem {
namespace {

// Columns of idem_generation, as sql/tables.sql makes them.
enum GenerationColumn {
    kDedup = 1,
    kGeneration,
    kOpenedAt,
    kSealedAt,
    kScannedAt,
    kEvents,
    kUnsettled,
    kNewestExpiry,
};

Oid Table() { return InstalledExtension().generation; }

Generation FromRow(HeapTuple tuple, TupleDesc desc) {
    Generation read = {};
    read.opened_at = DatumGetTimestampTz(ColumnOf(tuple, kOpenedAt, desc));
    if (heap_attisnull(tuple, kScannedAt, desc)) return read;
    read.scanned_at = DatumGetTimestampTz(ColumnOf(tuple, kScannedAt, desc));
    Census census = {};
    census.events = DatumGetInt64(ColumnOf(tuple, kEvents, desc));
    census.unsettled = DatumGetInt64(ColumnOf(tuple, kUnsettled, desc));
    if (!heap_attisnull(tuple, kNewestExpiry, desc))
        census.newest_expiry = DatumGetTimestampTz(ColumnOf(tuple, kNewestExpiry, desc));
    read.census = census;
    return read;
}

}  // namespace

std::optional<Generation> ReadGeneration(Oid dedup, int64_t generation) {
    std::optional<Generation> read;
    ReadOwnRows(Table(), KeyOf(dedup, generation),
                [&](HeapTuple tuple, TupleDesc desc) { read = FromRow(tuple, desc); });
    return read;
}

void ReadGenerations(void (*use)(Oid dedup, int64_t generation, const Generation &, void *), void *argument) {
    OwnKey all = {};
    ReadOwnRows(Table(), all, [&](HeapTuple tuple, TupleDesc desc) {
        use(DatumGetObjectId(ColumnOf(tuple, kDedup, desc)), DatumGetInt64(ColumnOf(tuple, kGeneration, desc)),
            FromRow(tuple, desc), argument);
    });
}

void RecordOpened(Oid dedup, int64_t generation) {
    DeleteOwnRow(Table(), KeyOf(dedup, generation));  // a restore may have brought one of before
    OwnRow row = {};
    row.Set(kDedup, ObjectIdGetDatum(dedup));
    row.Set(kGeneration, Int64GetDatum(generation));
    row.SetNow(kOpenedAt);
    InsertOwnRow(Table(), row);
}

void RecordSealed(Oid dedup, int64_t generation) {
    OwnRow row = {};
    row.SetNow(kSealedAt);
    UpdateOwnRow(Table(), KeyOf(dedup, generation), row);
}

void RecordCensus(Oid dedup, int64_t generation, const Census &census) {
    OwnRow row = {};
    row.SetNow(kScannedAt);
    row.Set(kEvents, Int64GetDatum(census.events));
    row.Set(kUnsettled, Int64GetDatum(census.unsettled));
    row.SetOrNull(kNewestExpiry, census.newest_expiry.has_value(),
                  TimestampTzGetDatum(census.newest_expiry.value_or(0)));
    UpdateOwnRow(Table(), KeyOf(dedup, generation), row);
}

void RecordRetired(Oid dedup, int64_t generation) { DeleteOwnRow(Table(), KeyOf(dedup, generation)); }

}  // namespace idem
