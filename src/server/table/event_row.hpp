// A row of a dedup table in memory, column by column, whatever the physical order in its partition.
#pragma once

#include "core/state.hpp"
#include "server/base/postgres.hpp"

namespace idem {

// In the order of the SQL type idem_event.
enum class Column : uint8_t {
    Key,
    State,
    Attempt,
    FirstSeenAt,
    ClaimedAt,
    ClaimableAt,
    SettledAt,
    ExpiresAt,
    Failures,
    Slot,
    Together,
    Handler,
    EventId,
    Batch,
    Fingerprint,
    Owner,
    Ordering,
    Result,
    Error,
    Payload,
    Extra,
};
constexpr int kColumnCount = 21;
extern const char *const kColumnNames[kColumnCount];

struct EventRow {
    Datum values[kColumnCount];
    bool nulls[kColumnCount];

    bool Has(Column column) const { return !nulls[static_cast<int>(column)]; }
    Datum Get(Column column) const { return values[static_cast<int>(column)]; }
    void Set(Column column, Datum value) {
        values[static_cast<int>(column)] = value;
        nulls[static_cast<int>(column)] = false;
    }
    void Clear(Column column) {
        values[static_cast<int>(column)] = Datum{0};
        nulls[static_cast<int>(column)] = true;
    }
};

// A row with every column null.
EventRow EmptyRow();

// Where each column stands in one relation or type.
struct ColumnMap {
    AttrNumber numbers[kColumnCount];
};

// Whether a column is NOT NULL in every dedup table.
bool IsRequired(Column column);

// Finds the columns by their names; raises 42809 if one is missing. Their types are the server's care: a partition has
// its parent's, and the parent is OF idem_event.
ColumnMap MapColumns(TupleDesc desc, const char *relation_name);

// Reads all columns; the datums point into the tuple.
EventRow ReadRow(TupleTableSlot *tuple, const ColumnMap &map);

// Makes a heap tuple of the row.
HeapTuple FormTuple(const EventRow &row, const ColumnMap &map, TupleDesc desc);

// What decides, out of the row's columns and back. A time equal to first_seen_at is stored as null.
Record RecordOfRow(const EventRow &row);
Micros ExpiresAt(const EventRow &row);
void SetRecord(EventRow *row, const Record &record);

}  // namespace idem
