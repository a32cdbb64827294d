// Access to idem's own tables: idem_registry and its like, one row for a dedup table, or for a generation of one.
//
// They are read as they are now, whatever the isolation level, and written whatever privileges the user has on them:
// who calls has checked ownership of the dedup table.
#pragma once

#include "server/postgres.hpp"

namespace idem {

constexpr int kMostOwnColumns = 16;

// New values of some columns of a row; columns count from 1.
struct OwnRow {
    Datum values[kMostOwnColumns];
    bool nulls[kMostOwnColumns];
    bool given[kMostOwnColumns];

    void Set(int column, Datum value) {
        values[column - 1] = value;
        nulls[column - 1] = false;
        given[column - 1] = true;
    }
    void SetNull(int column) {
        nulls[column - 1] = true;
        given[column - 1] = true;
    }
    void SetOrNull(int column, bool known, Datum value) {
        if (known)
            Set(column, value);
        else
            SetNull(column);
    }
};

// The value of a column that must not be null.
inline Datum ColumnOf(HeapTuple tuple, int column, TupleDesc desc) {
    bool null = false;
    Datum value = heap_getattr(tuple, column, desc, &null);
    if (null) elog(ERROR, "a row of idem's own tables has a null in column %d", column);
    return value;
}

// Calls use(tuple, descriptor) on the row whose primary key begins with `dedup`, and goes on with `generation` where
// one is given; returns whether there is one.
template <class F>
bool WithOwnRow(Relation table, Oid dedup, std::optional<int64_t> generation, F use) {
    ScanKeyData keys[2];
    ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(dedup));
    if (generation) ScanKeyInit(&keys[1], 2, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(*generation));
    Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    SysScanDesc scan = systable_beginscan(table, PrimaryKeyIndex(table), true, snapshot, generation ? 2 : 1, keys);
    HeapTuple tuple = systable_getnext(scan);
    bool found = HeapTupleIsValid(tuple);
    if (found) use(tuple, RelationGetDescr(table));
    systable_endscan(scan);
    UnregisterSnapshot(snapshot);
    return found;
}

// They take RowExclusiveLock on the table until the transaction ends. What a new row is not given is null. The others
// return whether there was a row.
void InsertOwnRow(Oid table, const OwnRow &row);
bool UpdateOwnRow(Oid table, Oid dedup, std::optional<int64_t> generation, OwnRow row);
bool DeleteOwnRow(Oid table, Oid dedup, std::optional<int64_t> generation);

// Deletes rows of dedup tables that are gone. Somebody else may be at it too, so what can't be deleted now is left.
void ForgetDropped(Oid table);

}  // namespace idem
