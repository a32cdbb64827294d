#include "server/ring/record.hpp"

#include "core/failure.hpp"
#include "core/state.hpp"
#include "server/base/extension.hpp"
#include "server/base/own_table.hpp"

namespace idem {
namespace {

// Columns of idem_purge_state, as sql/tables.sql makes them.
enum StateColumn {
    kDedup = 1,
    kLastChange,
    kTurned,
    kRetired,
    kEventsFreed,
    kBytesFreed,
    kEventsMoved,
    kEventsGivenUp,
    kFullSince,
    kLastError,
    kLastErrorAt,
    kLastPass,
};

constexpr Micros kBetweenRecords = 3600 * kSecond;

Oid Table() { return InstalledExtension().purge_state; }

// The row as it is; all zero and null where there is none yet.
OwnRow ReadState(Oid dedup, bool *found) {
    OwnRow row = {};
    row.Set(kDedup, ObjectIdGetDatum(dedup));
    for (int column = kTurned; column <= kEventsGivenUp; column++) row.Set(column, Int64GetDatum(0));
    *found = ReadOwnRows(Table(), KeyOf(dedup), [&](HeapTuple tuple, TupleDesc desc) {
                 for (int column = kTurned; column <= kLastPass; column++) {
                     bool null = false;
                     Datum value = heap_getattr(tuple, column, desc, &null);
                     if (column == kLastError && !null) value = PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
                     row.SetOrNull(column, !null, value);
                 }
             }) > 0;
    return row;
}

void WriteRow(Oid dedup, bool found, const OwnRow &row) {
    if (found)
        UpdateOwnRow(Table(), KeyOf(dedup), row);
    else
        InsertOwnRow(Table(), row);
}

// One reading of the clock says when the row changed and, in that column, since when it is so.
void WriteState(Oid dedup, bool found, OwnRow row, int since) {
    row.SetNow(kLastChange);
    row.Set(since, row.values[kLastChange - 1]);
    WriteRow(dedup, found, row);
}

PurgeRecord FromRow(HeapTuple tuple, TupleDesc desc) {
    PurgeRecord record = {};
    record.failed = !heap_attisnull(tuple, kLastError, desc);
    if (!heap_attisnull(tuple, kLastPass, desc))
        record.last_pass = DatumGetTimestampTz(ColumnOf(tuple, kLastPass, desc));
    return record;
}

bool Has(const OwnRow &row, int column) { return row.given[column - 1] && !row.nulls[column - 1]; }

}  // namespace

void RecordPurge(Oid dedup, const PurgeDone &done) {
    bool found = false;
    OwnRow row = ReadState(dedup, &found);
    auto add = [&](int column, int64_t more) {
        row.Set(column, Int64GetDatum(DatumGetInt64(row.values[column - 1]) + more));
    };
    add(kTurned, done.turned);
    add(kRetired, done.retired);
    add(kEventsFreed, done.events_freed);
    add(kBytesFreed, done.bytes_freed);
    add(kEventsMoved, done.events_moved);
    add(kEventsGivenUp, done.events_given_up);
    WriteState(dedup, found, row, kLastChange);
}

bool RecordFull(Oid dedup, bool full) {
    bool found = false;
    OwnRow row = ReadState(dedup, &found);
    if (Has(row, kFullSince) == full) return false;
    row.SetNull(kFullSince);
    WriteState(dedup, found, row, full ? kFullSince : kLastChange);
    return true;
}

bool RecordFailure(Oid dedup, const char *error) {
    constexpr int kMostBytes = 1024;
    if (error != nullptr) error = pnstrdup(error, pg_mbcliplen(error, strlen(error), kMostBytes));
    bool found = false;
    OwnRow row = ReadState(dedup, &found);
    bool failed = Has(row, kLastError);
    if (error == nullptr ? !failed
                         : failed && SameButForNumbers(TextDatumGetCString(row.values[kLastError - 1]), error))
        return false;
    row.SetOrNull(kLastError, error != nullptr, error != nullptr ? CStringGetTextDatum(error) : Datum{0});
    row.SetNull(kLastErrorAt);
    WriteState(dedup, found, row, error != nullptr ? kLastErrorAt : kLastChange);
    return true;
}

void RecordPass(Oid dedup) {
    bool found = false;
    OwnRow row = ReadState(dedup, &found);
    row.SetNow(kLastPass);
    WriteRow(dedup, found, row);
}

bool IsPassNews(std::optional<TimestampTz> recorded) {
    if (!recorded) return true;
    TimestampTz now = GetCurrentTimestamp();
    return *recorded > now || *recorded + kBetweenRecords < now;
}

PurgeRecord ReadPurgeRecord(Oid dedup) {
    PurgeRecord record = {};
    ReadOwnRows(Table(), KeyOf(dedup), [&](HeapTuple tuple, TupleDesc desc) { record = FromRow(tuple, desc); });
    return record;
}

void ReadPurgeRecords(void (*use)(Oid dedup, const PurgeRecord &, void *), void *argument) {
    OwnKey all = {};
    ReadOwnRows(Table(), all, [&](HeapTuple tuple, TupleDesc desc) {
        use(DatumGetObjectId(ColumnOf(tuple, kDedup, desc)), FromRow(tuple, desc), argument);
    });
}

}  // namespace idem
