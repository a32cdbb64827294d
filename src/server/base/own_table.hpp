// Access to idem's own tables: idem_registry and its like, one row for a dedup table, or for a generation of one.
//
// They are read as they are now, whatever the isolation level, and written whatever privileges the user has on them:
// who calls has checked ownership of the dedup table.
#pragma once

#include "server/base/postgres.hpp"

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
    void SetNow(int column) { Set(column, TimestampTzGetDatum(GetCurrentTimestamp())); }
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

// The primary key of a row, or the first part of it.
struct OwnKey {
    ScanKeyData parts[2];
    int count;
};
OwnKey KeyOf(Oid dedup);
OwnKey KeyOf(Oid dedup, int64_t generation);
OwnKey KeyOf(Oid dedup, const text *handler);

// Calls use(tuple, descriptor) on every row with the key, in the order of the primary key; returns how many there are.
template <class F>
int ForEachOwnRow(Relation table, const OwnKey &key, F use) {
    OwnKey keys = key;
    Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    SysScanDesc scan = systable_beginscan(table, PrimaryKeyIndex(table), true, snapshot, keys.count, keys.parts);
    int count = 0;
    for (; HeapTuple tuple = systable_getnext(scan); count++) use(tuple, RelationGetDescr(table));
    systable_endscan(scan);
    UnregisterSnapshot(snapshot);
    return count;
}

// The same in a table that is opened for reading.
template <class F>
int ReadOwnRows(Oid table_id, const OwnKey &key, F use) {
    Relation table = table_open(table_id, AccessShareLock);
    int count = ForEachOwnRow(table, key, use);
    table_close(table, AccessShareLock);
    return count;
}

// They take RowExclusiveLock on the table until the transaction ends. What a new row is not given is null. The others
// return how many rows there were.
void InsertOwnRow(Oid table, const OwnRow &row);
int UpdateOwnRow(Oid table, const OwnKey &key, OwnRow row);
int DeleteOwnRow(Oid table, const OwnKey &key);

// Deletes rows of dedup tables that are gone. Somebody else may be at it too, so what can't be deleted now is left.
void ForgetDropped(Oid table);

}  // namespace idem
