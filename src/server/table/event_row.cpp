#include "server/table/event_row.hpp"

#include "server/base/extension.hpp"

namespace idem {

const char *const kColumnNames[kColumnCount] = {
    "key",         "state",    "attempt",  "first_seen_at", "claimed_at", "claimable_at", "settled_at",
    "expires_at",  "failures", "slot",     "together",      "handler",    "event_id",     "batch",
    "fingerprint", "owner",    "ordering", "result",        "error",      "payload",      "extra",
};

// Times pass unchanged between Micros and timestamptz.
static_assert(kForever == DT_NOEND);

namespace {

Micros TimeOr(const EventRow &row, Column column, Micros otherwise) {
    return row.Has(column) ? DatumGetTimestampTz(row.Get(column)) : otherwise;
}

// A time that says nothing new takes no room.
void SetTime(EventRow *row, Column column, Micros time, bool says_something) {
    if (says_something)
        row->Set(column, TimestampTzGetDatum(time));
    else
        row->Clear(column);
}

}  // namespace

EventRow EmptyRow() {
    EventRow row;
    for (int i = 0; i < kColumnCount; i++) row.Clear(static_cast<Column>(i));
    return row;
}

bool IsRequired(Column column) {
    switch (column) {
        case Column::Key:
        case Column::State:
        case Column::Attempt:
        case Column::FirstSeenAt:
        case Column::ExpiresAt:
        case Column::Failures:
        case Column::Slot:
        case Column::Handler:
        case Column::EventId:
            return true;
        default:
            return false;
    }
}

ColumnMap MapColumns(TupleDesc desc, const char *relation_name) {
    ColumnMap map = {};
    if (desc->natts != kColumnCount)
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                        errmsg("\"%s\" has not the columns of type idem_event", relation_name)));
    for (int i = 0; i < kColumnCount; i++) {
        for (int attribute = 0; attribute < desc->natts; attribute++) {
            Form_pg_attribute form = TupleDescAttr(desc, attribute);
            if (!form->attisdropped && strcmp(NameStr(form->attname), kColumnNames[i]) == 0)
                map.numbers[i] = form->attnum;
        }
        if (map.numbers[i] == 0)
            ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                            errmsg("\"%s\" has no column \"%s\"", relation_name, kColumnNames[i]),
                            errdetail("A dedup table and its partitions have the columns of type idem_event.")));
    }
    return map;
}

EventRow ReadRow(TupleTableSlot *tuple, const ColumnMap &map) {
    EventRow row;
    slot_getallattrs(tuple);
    for (int i = 0; i < kColumnCount; i++) {
        row.values[i] = tuple->tts_values[map.numbers[i] - 1];
        row.nulls[i] = tuple->tts_isnull[map.numbers[i] - 1];
    }
    return row;
}

HeapTuple FormTuple(const EventRow &row, const ColumnMap &map, TupleDesc desc) {
    Datum values[kColumnCount];
    bool nulls[kColumnCount];
    Assert(desc->natts == kColumnCount);
    for (int i = 0; i < kColumnCount; i++) {
        values[map.numbers[i] - 1] = row.values[i];
        nulls[map.numbers[i] - 1] = row.nulls[i];
    }
    return heap_form_tuple(desc, values, nulls);
}

Record RecordOfRow(const EventRow &row) {
    Record record;
    record.state = StateOfLabel(DatumGetObjectId(row.Get(Column::State)));
    record.attempt = DatumGetInt32(row.Get(Column::Attempt));
    record.failures = DatumGetInt32(row.Get(Column::Failures));
    record.first_seen_at = DatumGetTimestampTz(row.Get(Column::FirstSeenAt));
    record.claimed_at = TimeOr(row, Column::ClaimedAt, record.first_seen_at);
    record.claimable_at = TimeOr(row, Column::ClaimableAt, 0);
    record.settled_at = record.state == State::Done ? TimeOr(row, Column::SettledAt, record.first_seen_at) : 0;
    record.expires_at = ExpiresAt(row);
    record.together = row.Has(Column::Together) && DatumGetBool(row.Get(Column::Together));
    return record;
}

Micros ExpiresAt(const EventRow &row) { return DatumGetTimestampTz(row.Get(Column::ExpiresAt)); }

void SetRecord(EventRow *row, const Record &record) {
    bool done = record.state == State::Done;
    row->Set(Column::State, ObjectIdGetDatum(InstalledExtension().states[static_cast<int>(record.state)]));
    row->Set(Column::Attempt, Int32GetDatum(record.attempt));
    row->Set(Column::Failures, Int32GetDatum(record.failures));
    row->Set(Column::FirstSeenAt, TimestampTzGetDatum(record.first_seen_at));
    SetTime(row, Column::ClaimedAt, record.claimed_at, record.claimed_at != record.first_seen_at);
    SetTime(row, Column::ClaimableAt, record.claimable_at, !done);
    SetTime(row, Column::SettledAt, record.settled_at, done && record.settled_at != record.first_seen_at);
    row->Set(Column::ExpiresAt, TimestampTzGetDatum(record.expires_at));
    if (record.together)
        row->Set(Column::Together, BoolGetDatum(true));
    else
        row->Clear(Column::Together);
}

}  // namespace idem
