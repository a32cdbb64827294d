#include "server/base/own_table.hpp"

namespace idem {

OwnKey KeyOf(Oid dedup) {
    OwnKey key = {};
    ScanKeyInit(&key.parts[0], 1, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(dedup));
    key.count = 1;
    return key;
}

OwnKey KeyOf(Oid dedup, int64_t generation) {
    OwnKey key = KeyOf(dedup);
    ScanKeyInit(&key.parts[1], 2, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(generation));
    key.count = 2;
    return key;
}

OwnKey KeyOf(Oid dedup, const text *handler) {
    OwnKey key = KeyOf(dedup);
    ScanKeyInit(&key.parts[1], 2, BTEqualStrategyNumber, F_TEXTEQ, PointerGetDatum(handler));
    key.count = 2;
    return key;
}

void InsertOwnRow(Oid table_id, const OwnRow &row) {
    Relation table = table_open(table_id, RowExclusiveLock);
    TupleDesc desc = RelationGetDescr(table);
    bool nulls[kMostOwnColumns];
    Datum values[kMostOwnColumns];
    for (int i = 0; i < desc->natts; i++) {
        nulls[i] = !row.given[i] || row.nulls[i];
        values[i] = row.values[i];
    }
    HeapTuple tuple = heap_form_tuple(desc, values, nulls);
    CatalogTupleInsert(table, tuple);
    heap_freetuple(tuple);
    table_close(table, NoLock);
    CommandCounterIncrement();
}

int UpdateOwnRow(Oid table_id, const OwnKey &key, OwnRow row) {
    Relation table = table_open(table_id, RowExclusiveLock);
    int count = ForEachOwnRow(table, key, [&](HeapTuple tuple, TupleDesc desc) {
        HeapTuple next = heap_modify_tuple(tuple, desc, row.values, row.nulls, row.given);
        CatalogTupleUpdate(table, &tuple->t_self, next);
        heap_freetuple(next);
    });
    table_close(table, NoLock);
    CommandCounterIncrement();
    return count;
}

int DeleteOwnRow(Oid table_id, const OwnKey &key) {
    Relation table = table_open(table_id, RowExclusiveLock);
    int count =
        ForEachOwnRow(table, key, [&](HeapTuple tuple, TupleDesc) { CatalogTupleDelete(table, &tuple->t_self); });
    table_close(table, NoLock);
    CommandCounterIncrement();
    return count;
}

void ForgetDropped(Oid table_id) {
    Relation table = table_open(table_id, RowExclusiveLock);
    Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    SysScanDesc scan = systable_beginscan(table, InvalidOid, false, snapshot, 0, nullptr);
    while (HeapTuple tuple = systable_getnext(scan)) {
        Oid dedup = DatumGetObjectId(ColumnOf(tuple, 1, RelationGetDescr(table)));
        if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(dedup))) continue;
        DeleteTuple(table, &tuple->t_self, snapshot, false);
    }
    systable_endscan(scan);
    UnregisterSnapshot(snapshot);
    table_close(table, NoLock);
}

}  // namespace idem
