#include "server/registry.hpp"

#include "server/arguments.hpp"
#include "server/extension.hpp"

namespace idem {
namespace {

// Columns of idem_registry and idem_control, as sql/idem.sql makes them.
enum RegistryColumn {
    kRegistryDedup = 1,
    kRegistryMode,
    kRegistryHot,
    kRegistryCold,
    kRegistryUnresolved,
    kRegistryEnd
};
enum ControlColumn { kControlDedup = 1, kControlSlots, kControlOldest, kControlCurrent, kControlOpenedAt, kControlEnd };

// Calls use(tuple, descriptor) on the row of a dedup table as it is now, and returns whether there is one.
template <class F>
bool WithRowOf(Oid dedup, Relation table, F use) {
    ScanKeyData key;
    ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(dedup));
    Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    SysScanDesc scan = systable_beginscan(table, PrimaryKeyIndex(table), true, snapshot, 1, &key);
    HeapTuple tuple = systable_getnext(scan);
    bool found = HeapTupleIsValid(tuple);
    if (found) use(tuple, RelationGetDescr(table));
    systable_endscan(scan);
    UnregisterSnapshot(snapshot);
    return found;
}

Datum ColumnOf(HeapTuple tuple, int column, TupleDesc desc) {
    bool null = false;
    Datum value = heap_getattr(tuple, column, desc, &null);
    if (null) elog(ERROR, "idem's registry has a null in column %d", column);
    return value;
}

Micros WindowOf(HeapTuple tuple, int column, TupleDesc desc) {
    return WindowOfInterval(DatumGetIntervalP(ColumnOf(tuple, column, desc)),
                            NameStr(TupleDescAttr(desc, column - 1)->attname));
}

// Rows of tables that are gone. Somebody else may be at it too, so a row that can't be deleted now is left.
void ForgetDropped(Relation table) {
    Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    SysScanDesc scan = systable_beginscan(table, InvalidOid, false, snapshot, 0, nullptr);
    while (HeapTuple tuple = systable_getnext(scan)) {
        Oid dedup = DatumGetObjectId(ColumnOf(tuple, 1, RelationGetDescr(table)));
        if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(dedup))) continue;
        TM_FailureData failure;
        table_tuple_delete(table, &tuple->t_self, GetCurrentCommandId(true), snapshot, InvalidSnapshot, false, &failure,
                           false);
    }
    systable_endscan(scan);
    UnregisterSnapshot(snapshot);
}

void InsertRow(Relation table, Datum *values) {
    bool nulls[kRegistryEnd] = {};
    HeapTuple tuple = heap_form_tuple(RelationGetDescr(table), values, nulls);
    CatalogTupleInsert(table, tuple);
    heap_freetuple(tuple);
}

}  // namespace

bool ReadPolicy(Oid dedup, Policy *policy) {
    Relation table = table_open(InstalledExtension().registry, AccessShareLock);
    bool found = WithRowOf(dedup, table, [&](HeapTuple tuple, TupleDesc desc) {
        policy->transaction_mode = TransactionModeOf(ViewOf(DatumGetTextPP(ColumnOf(tuple, kRegistryMode, desc))));
        policy->windows.hot = WindowOf(tuple, kRegistryHot, desc);
        policy->windows.cold = WindowOf(tuple, kRegistryCold, desc);
        policy->windows.unresolved = WindowOf(tuple, kRegistryUnresolved, desc);
    });
    table_close(table, AccessShareLock);
    return found;
}

bool ReadRingPosition(Oid dedup, RingPosition *position) {
    Relation table = table_open(InstalledExtension().control, AccessShareLock);
    bool found = WithRowOf(dedup, table, [&](HeapTuple tuple, TupleDesc desc) {
        position->slots = DatumGetInt16(ColumnOf(tuple, kControlSlots, desc));
        position->oldest = DatumGetInt64(ColumnOf(tuple, kControlOldest, desc));
        position->current = DatumGetInt64(ColumnOf(tuple, kControlCurrent, desc));
    });
    table_close(table, AccessShareLock);
    return found;
}

void Register(Oid dedup, const Policy &policy, RingPosition position) {
    const Extension &extension = InstalledExtension();

    Policy registered;
    if (ReadPolicy(dedup, &registered))
        ereport(ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT),
                        errmsg("dedup table \"%s\" is registered already", get_rel_name(dedup))));

    Relation registry = table_open(extension.registry, RowExclusiveLock);
    ForgetDropped(registry);
    Datum row[kRegistryEnd - 1];
    row[kRegistryDedup - 1] = ObjectIdGetDatum(dedup);
    row[kRegistryMode - 1] = CStringGetTextDatum(policy.transaction_mode ? "transaction" : "lease");
    row[kRegistryHot - 1] = IntervalPGetDatum(IntervalOfSpan(policy.windows.hot));
    row[kRegistryCold - 1] = IntervalPGetDatum(IntervalOfSpan(policy.windows.cold));
    row[kRegistryUnresolved - 1] = IntervalPGetDatum(IntervalOfSpan(policy.windows.unresolved));
    InsertRow(registry, row);
    table_close(registry, NoLock);

    Relation control = table_open(extension.control, RowExclusiveLock);
    ForgetDropped(control);
    Datum place[kControlEnd - 1];
    place[kControlDedup - 1] = ObjectIdGetDatum(dedup);
    place[kControlSlots - 1] = Int16GetDatum(static_cast<int16>(position.slots));
    place[kControlOldest - 1] = Int64GetDatum(position.oldest);
    place[kControlCurrent - 1] = Int64GetDatum(position.current);
    place[kControlOpenedAt - 1] = TimestampTzGetDatum(GetCurrentTimestamp());
    InsertRow(control, place);
    table_close(control, NoLock);

    CommandCounterIncrement();
}

void WriteRingPosition(Oid dedup, RingPosition position) {
    Relation control = table_open(InstalledExtension().control, RowExclusiveLock);
    bool found = WithRowOf(dedup, control, [&](HeapTuple tuple, TupleDesc desc) {
        Datum values[kControlEnd - 1] = {};
        bool nulls[kControlEnd - 1] = {};
        bool replace[kControlEnd - 1] = {};
        bool turned = DatumGetInt64(ColumnOf(tuple, kControlCurrent, desc)) != position.current;
        values[kControlOldest - 1] = Int64GetDatum(position.oldest);
        values[kControlCurrent - 1] = Int64GetDatum(position.current);
        values[kControlOpenedAt - 1] = TimestampTzGetDatum(GetCurrentTimestamp());
        replace[kControlOldest - 1] = replace[kControlCurrent - 1] = true;
        replace[kControlOpenedAt - 1] = turned;
        HeapTuple next = heap_modify_tuple(tuple, desc, values, nulls, replace);
        CatalogTupleUpdate(control, &tuple->t_self, next);
        heap_freetuple(next);
    });
    if (!found) elog(ERROR, "dedup table %u has no ring position", dedup);
    table_close(control, NoLock);
    CacheInvalidateRelcacheByRelid(dedup);
}

}  // namespace idem
